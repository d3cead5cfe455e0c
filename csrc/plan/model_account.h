#pragma once

namespace specllama {

// What asking a draft model has brought, in all requests: one that is never right should not read
// the prompt of each, and one that is never asked would never be known to be better. What it has
// lost is forgiven by a small part of the time, what it has saved is forgotten after some screens
// of text.
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
