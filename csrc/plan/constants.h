#pragma once

#include <array>

// The planner's constants, with their reasons. One set for all machines, models and texts. The
// priors of each kind of evidence are in acceptance.cpp.
namespace specllama::tuning {

// Tokens of a long text (a few screens). Rates and a draft model's savings are forgotten over about
// this many tokens. A measured cost of longer contexts gets a weight of half when the contexts
// differ by about this many tokens.
inline constexpr double kLongText = 600;

// -- Cost of a decode ------------------------------------------------------------------------

// Before measurements, v(n) / v(1) is assumed to be n to this power. This is between the costs of
// bf16 and q4_0 weights on a CPU, and favours short drafts. Nothing is assumed about v(1): its
// first measurement replaces the prior.
inline constexpr double kPriorPower = 0.7;
// Standard deviations of log(seconds): v(1) before it is measured;
inline constexpr double kUnknownSd = 10;
// values without a measurement in this session: the assumed v(n) / v(1) for distant n (the lowest
// and the highest curve differ by a factor of 4), or the machine's speed in an earlier session (it
// may be busier or cooler now);
inline constexpr double kBelievedSd = 0.35;
// one timing, on a machine that runs other programs, too.
inline constexpr double kTimingSd = 0.08;
// The part of the shape's variance that a point does not share with its neighbours, since there may
// be a step between them.
inline constexpr double kStep = 0.25;
// Standard deviations by which the machine's speed, and each ratio v(n) / v(1), may drift per
// decode. The estimate follows a machine that slows down within about ten decodes, and a ratio
// becomes uncertain again after a thousand.
inline constexpr double kSpeedWander = 0.02;
inline constexpr double kShapeWander = 0.001;
// Seconds of measuring when a session has no curve of an earlier one, or checks whether it is still
// valid, without the warm-up.
inline constexpr double kCalibrationSeconds = 0.5;
// Deviations of more than this many standard deviations are not due to chance. Timings are clipped
// to this deviation. A lower cost of more tokens is accepted only beyond it. A ratio known to
// within this many standard deviations of a timing needs no measurement.
inline constexpr double kBeyondDoubt = 2.5;

// When drafts are chosen, a decode counts as this many standard deviations cheaper than expected,
// so uncertain widths are tried until they are known. With twice as many, trying costs more than it
// gains.
inline constexpr double kOptimism = 0.4;

// -- Acceptance ------------------------------------------------------------------------------

// Weight of prior knowledge in tokens: of the prior of a rate, and of the regimes in earlier
// requests.
inline constexpr double kPrior = 6;
// Regimes of a text (such as copying or free): by how much each shifts the log-odds of all rates.
// About twenty tokens can distinguish steps of 1.2. A shift of 4 changes 0.5 to 0.02 or 0.98. (Real
// answers need only three regimes; a drafter that is never right, or always, needs the outer ones.)
inline constexpr std::array<double, 7> kShifts = {-4, -2.5, -1.2, 0, 1.2, 2.5, 4};
// Prior number of tokens in each regime, and the number of tokens over which observed tokens are
// forgotten.
inline constexpr std::array<double, 7> kShiftPrior = {4, 4, 4, 60, 4, 4, 4};
inline constexpr double kShiftWindow = 200;
// Probability that a regime ends at a token: regimes have some tens of tokens. The expected gain of
// drafts is forgotten at the same rate per round (WidthSwitch).
inline constexpr double kRegimeEnd = 1.0 / 40;

// -- Risk ------------------------------------------------------------------------------------

// The risk exponent is 1 plus this for each token that could have been decoded in the time that
// drafting has cost the request so far.
inline constexpr double kRiskPerToken = 0.1;
// The time, in plain rounds, that the drafts of a request may add to a decode, in addition to what
// drafting has saved in the request so far. It allows the highest step seen (4-bit weights on a
// CPU, where no short draft pays and 16 tokens cost 8.2 decodes; on an Apple GPU, 4.1), but not a
// copy at the cost of twenty decodes in a text that has not copied before.
inline constexpr double kDraftBudget = 8.5;
// A draft model processes a text if the remaining tokens are expected to save this many times its
// cost, because the expectation is uncertain and copies may begin later.
inline constexpr double kReadingMargin = 2.5;
// Rounds before this decision. A copy begins only when four tokens match, so the first rounds do
// not show whether the text copies.
inline constexpr int kRoundsBeforeReading = 3;
// Expected number of remaining tokens, in addition to the number of tokens so far, within the limit
// of the request: a long text usually continues for long.
inline constexpr int kToCome = 200;
// Smaller fractions are neglected. A draft model may lose this fraction of the time permanently. A
// draft ends where its next token is reached with a lower probability, since in all measurements a
// row takes more than this fraction of a decode of one token.
inline constexpr double kNegligible = 0.005;

}  // namespace specllama::tuning
