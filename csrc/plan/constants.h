#pragma once

#include <array>

// The planner's constants, with their reasons; what is believed of each kind of evidence beforehand
// stands in acceptance.cpp. One set for all machines, models and texts.
namespace specllama::tuning {

// Tokens of a long text, a few screens of it. After about so many rates, and what a draft model has
// saved, are forgotten; and that a longer context costs more is believed by half once it showed in
// contexts that far apart.
inline constexpr double kLongText = 600;

// -- Cost of a decode ------------------------------------------------------------------------

// A guess at v(n) / v(1) before anything is measured: n to this power lies between what bf16 and
// q4_0 weights cost on a CPU, so it errs on the side of short drafts. Of v(1) nothing is known: the
// first measurement replaces it, whatever it is.
inline constexpr double kPriorPower = 0.7;
// Standard deviations, of the logarithm: of v(1) before that; of what is believed without having
// been measured here, the guess at v(n) / v(1) for distant n (between the cheapest and the dearest
// curve lies a factor of 4), or the machine's speed in an earlier session (it may be busier now, or
// cooler); and of one timing on a machine that does other things too.
inline constexpr double kUnknownSd = 10;
inline constexpr double kBelievedSd = 0.35;
inline constexpr double kTimingSd = 0.08;
// Variance, as a part of that, which a point has for itself: between two neighbours may be a stair.
inline constexpr double kStep = 0.25;
// How far the machine's speed, and apart from it a single ratio, may wander per decode: a machine
// that slows down is followed within some ten decodes, a ratio is doubted again after a thousand.
inline constexpr double kSpeedWander = 0.02;
inline constexpr double kShapeWander = 0.001;
// Seconds that measuring decodes may take when a session finds no curve of an earlier one, or looks
// whether that one still holds; beside what warms up.
inline constexpr double kCalibrationSeconds = 0.5;
// So many standard deviations nothing is off by chance. A timing that is further off counts as one
// that far off; that more tokens cost less than fewer is believed but for these; and a ratio needs
// no timing of its own if it is known to within as many of a timing's.
inline constexpr double kBeyondDoubt = 2.5;

// So many standard deviations less than believed a decode counts as taking when it is chosen: what
// is in doubt is tried until it is known. With twice as much, trying costs more than it finds.
inline constexpr double kOptimism = 0.4;

// -- Acceptance ------------------------------------------------------------------------------

// What is known beforehand counts like so many tokens: of a rate its prior; of the phases of a
// request what earlier ones have shown.
inline constexpr double kPrior = 6;
// Phases of a text (copying, free): how far each shifts the log-odds of all rates. Steps of 1.2 are
// about what some twenty tokens can tell apart; 4 either way reaches from 0.5 to 0.02 and 0.98.
// (Real answers need but three phases; a drafter that is never right, or always, needs the ends.)
inline constexpr std::array<double, 7> kShifts = {-4, -2.5, -1.2, 0, 1.2, 2.5, 4};
// How often each is found, before a text has shown it, counted as so many tokens.
inline constexpr std::array<double, 7> kShiftPrior = {4, 4, 4, 60, 4, 4, 4};
// That is forgotten after about so many tokens.
inline constexpr double kShiftWindow = 200;
// Probability that a phase ends with a token: phases are some tens of tokens long.
inline constexpr double kPhaseEnd = 1.0 / 40;

// -- Caution ---------------------------------------------------------------------------------

// What a chance is raised to, beyond 1, for each token that could have been decoded in the time
// that drafting has cost the request so far.
inline constexpr double kCautionPerToken = 0.1;
// What the drafts of a request may add to a decode, in times of a plain round, beside what drafting
// has saved in it so far: as much as is needed to cross the widest stair seen (that of 4-bit
// weights on a CPU, where no short draft pays and 16 tokens cost 8.2; an Apple GPU's is 4.1), but
// nobody bets twenty decodes on a copy before the text has shown that it copies.
inline constexpr double kStake = 8.5;
// A round without the draft model counts as missing at least this part of what the model would save
// in the phase that suits it best. With more, a text whose copies are soon found pays for both.
inline constexpr double kHope = 0.125;
// What is less than this part of the time is not cared about: a draft model may lose it for good;
// and where a draft is expected to get less often, it ends, since a row takes more of a decode of
// one wherever that was measured.
inline constexpr double kNegligible = 0.005;

}  // namespace specllama::tuning
