#pragma once

#include <array>

// The planner's constants, with their reasons; what is believed of each kind of evidence beforehand
// stands in acceptance.cpp. One set for all machines, models and texts.
namespace specllama::tuning {

// Tokens of a long text, a few screens of it. Rates, and what a draft model has saved, are
// forgotten over about so many tokens. And contexts must differ by about so many before half of
// what a longer one seems to cost is believed.
inline constexpr double kLongText = 600;

// -- Cost of a decode ------------------------------------------------------------------------

// The guess at v(n) / v(1) before anything is measured is n to this power. It lies between what
// bf16 and q4_0 weights cost on a CPU, and errs on the side of short drafts. Nothing is assumed of
// v(1): its first measurement replaces the prior.
inline constexpr double kPriorPower = 0.7;
// Standard deviations of log(seconds):
// of v(1) before it is measured;
inline constexpr double kUnknownSd = 10;
// of what is believed without a measurement of this session: the guess at v(n) / v(1) for distant n
// (the cheapest and the dearest curve differ by a factor of 4), or the machine's speed in an
// earlier session (it may be busier now, or cooler);
inline constexpr double kBelievedSd = 0.35;
// of one timing, on a machine that does other things too.
inline constexpr double kTimingSd = 0.08;
// The part of the shape's variance that a point does not share with its neighbours, since there may
// be a stair between two of them.
inline constexpr double kStep = 0.25;
// Standard deviations by which the machine's speed, and each single ratio v(n) / v(1), may wander
// per decode: a machine that slows down is followed within some ten decodes, and a ratio is doubted
// again after a thousand.
inline constexpr double kSpeedWander = 0.02;
inline constexpr double kShapeWander = 0.001;
// Seconds of measuring when a session finds no curve of an earlier one, or checks whether that one
// still holds; warming up comes on top.
inline constexpr double kCalibrationSeconds = 0.5;
// What is more than this many standard deviations off is not off by chance. A timing further off
// counts as this far off; that more tokens cost less than fewer is believed only beyond it; and a
// ratio known to within this many of a timing's needs no timing of its own.
inline constexpr double kBeyondDoubt = 2.5;

// When drafts are chosen, a decode counts as this many standard deviations cheaper than believed,
// so widths in doubt are tried until they are known. With twice as many, trying costs more than it
// finds.
inline constexpr double kOptimism = 0.4;

// -- Acceptance ------------------------------------------------------------------------------

// Tokens that prior knowledge counts as: the prior of a rate, and what earlier requests have shown
// of the regimes.
inline constexpr double kPrior = 6;
// Phases of a text (copying, free): by how much each shifts the log-odds of all rates. Some twenty
// tokens can tell steps of 1.2 apart; 4 either way takes 0.5 to 0.02 and to 0.98. (Real answers
// need but three regimes; a drafter that is never right, or always, needs the ends.)
inline constexpr std::array<double, 7> kShifts = {-4, -2.5, -1.2, 0, 1.2, 2.5, 4};
// Prior number of tokens in each regime, and the number of tokens over which what was met besides
// is forgotten.
inline constexpr std::array<double, 7> kShiftPrior = {4, 4, 4, 60, 4, 4, 4};
inline constexpr double kShiftWindow = 200;
// Probability that a regime ends with a token: regimes are some tens of tokens long. What drafts
// have promised is forgotten at this rate, too, in rounds (WidthSwitch).
inline constexpr double kRegimeEnd = 1.0 / 40;

// -- Risk ------------------------------------------------------------------------------------

// The risk exponent raises chances to the power of 1 plus this for each token that could have been
// decoded in the time that drafting has cost the request so far.
inline constexpr double kRiskPerToken = 0.1;
// What the drafts of a request may add to a decode, in plain rounds, beside what drafting has saved
// in the request so far. It is enough to cross the widest stair seen (4-bit weights on a CPU, where
// no short draft pays and 16 tokens cost 8.2; an Apple GPU's is 4.1), but nobody bets twenty
// decodes on a copy before the text has shown that it copies.
inline constexpr double kDraftBudget = 8.5;
// A draft model takes in a text if the tokens to come are expected to save so many times what that
// takes: no regime is known as soon as that expectation has it, and copies may begin later.
inline constexpr double kReadingMargin = 2.5;
// Rounds before that is decided. A copy begins once four tokens match, so only then does the text
// show whether it copies.
inline constexpr int kRoundsBeforeReading = 3;
// Tokens that are taken to come, if so many may, besides as many as have come: what has gone on for
// long goes on.
inline constexpr int kToCome = 200;
// Parts smaller than this are neglected: a draft model may lose this part of the time for good, and
// a draft ends where its next token would be reached more rarely, since a row takes more than this
// part of a decode of one wherever that was measured.
inline constexpr double kNegligible = 0.005;

}  // namespace specllama::tuning
