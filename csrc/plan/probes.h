#pragma once

#include "plan/constants.h"

namespace specllama {

// Decodes that are not the best that is known, made to find out whether they are cheaper than
// believed: a small part of the time of all decodes, whoever asks for them.
class ProbeBudget {
 public:
    void spend(double seconds) { seconds_ += seconds; }
    // Whether so much may be lost.
    bool has(double loss) const { return lost_ + loss <= tuning::kForgiven * seconds_; }
    void lose(double seconds) { lost_ += seconds; }

 private:
    double seconds_ = 0;  // of all decodes
    double lost_ = 0;     // of those, by probes
};

// Decodes that may be cheaper than believed.
class CostProbe {
 public:
    // Whether it is time for one; asked once a round.
    bool due() { return ++n_rounds_ >= interval_; }
    // One of n rows begins, believed to take so long.
    void begin(int n, double seconds);
    // What a decode took.
    void observe(int n, double seconds);

 private:
    double interval_ = 1;  // rounds from one to the next
    int n_rounds_ = 0;     // since the last
    int n_ = 0;            // rows of the one under way
    double believed_ = 0;  // seconds that it takes
};

// Questions to a draft model that does not seem to pay: one that is never asked would never be
// known to be better. It is asked for one token a round, as long as they are right, so that a run
// of them shows the phase that the text is in. What they may cost, its account says.
class ModelProbe {
 public:
    // Whether it is time for one; asked once a round.
    bool due() { return ++n_rounds_ >= interval_ || n_right_ > 0; }
    // Tokens that a run of them still takes.
    int n_missing() const;
    void begin() { under_way_ = true; }
    bool under_way() const { return under_way_; }
    void end(bool right);

 private:
    int interval_ = 1;  // rounds from one to the next: longer, the more were useless
    int n_rounds_ = 0;  // since the last
    int n_right_ = 0;   // in a row
    bool under_way_ = false;
};

// What asking a draft model has brought, in all requests: one that is never right should not read
// the prompt of each. What it has lost is forgiven by a small part of the time, what it has saved
// is forgotten after some screens of text.
class ModelAccount {
 public:
    // Seconds; negative: it has lost so much.
    double balance() const { return balance_; }
    // Of a round: seconds saved by asking, its tokens, and the seconds that they take plainly.
    void add(double saved, double plain, int n_tokens);

 private:
    double balance_ = 0;
};

}  // namespace specllama
