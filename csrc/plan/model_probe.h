#pragma once

namespace specllama {

// Questions to a draft model that does not seem to pay: one that is never asked would never be
// known to have become better. It is asked for one token a round, as long as they are right, so
// that a run of them shows the phase that the text is in. They may cost a small part of the time of
// all rounds.
class ModelProbe {
 public:
    // A decode of the target took so long.
    void spend(double seconds) { seconds_ += seconds; }
    // Whether it is time for one; asked once a round.
    bool due() { return ++n_rounds_ >= interval_ || n_right_ > 0; }
    // Begins one that loses so many seconds, if these can be afforded, and a whole run of tokens of
    // `step` seconds each.
    bool begin(double loss, double step);
    bool under_way() const { return under_way_; }
    void end(bool right);

 private:
    double seconds_ = 0;  // of all decodes
    double lost_ = 0;     // of those, by probes
    int interval_ = 1;    // rounds from one to the next: longer, the more were useless
    int n_rounds_ = 0;    // since the last
    int n_right_ = 0;     // in a row
    bool under_way_ = false;
};

}  // namespace specllama
