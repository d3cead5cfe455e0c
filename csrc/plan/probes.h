#pragma once

#include "plan/constants.h"

namespace specllama {

// Rounds that are not the best that is known, made to find out whether they are better: a small
// part of the time of all rounds, one budget for all kinds of them.
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

// Rounds from one probe to the next: twice as many after one that was useless, half as many after
// another.
class ProbeSpacing {
 public:
    // Whether it is time for one; asked once a round.
    bool due() { return ++n_rounds_ >= interval_; }
    void end(bool useful);

 private:
    int interval_ = 1;
    int n_rounds_ = 0;  // since the last
};

// Decodes that may be cheaper than believed.
class CostProbe {
 public:
    bool due() { return spacing_.due(); }
    // One of n rows begins, believed to take so long.
    void begin(int n, double seconds) {
        n_ = n;
        believed_ = seconds;
    }
    // What a decode took.
    void observe(int n, double seconds);

 private:
    ProbeSpacing spacing_;
    int n_ = 0;            // rows of the one under way
    double believed_ = 0;  // seconds that it takes
};

// Questions to a draft model that does not seem to pay: one that is never asked would never be
// known to have become better. It is asked for one token a round, as long as they are right, so
// that a run of them shows the phase that the text is in.
class ModelProbe {
 public:
    bool due() { return spacing_.due() || n_right_ > 0; }
    // Tokens that a run of them still takes.
    int n_missing() const;
    void begin() { under_way_ = true; }
    bool under_way() const { return under_way_; }
    void end(bool right);

 private:
    ProbeSpacing spacing_;  // a run is useful that goes half the way
    int n_right_ = 0;       // in a row
    bool under_way_ = false;
};

}  // namespace specllama
