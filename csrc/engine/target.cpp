#include "engine/target.h"

#include <utility>

#include "system/clock.h"

namespace specllama {

bool Verification::accept(Token token, std::optional<TokenLogprobs> logprobs) {
    last = token;
    tokens.push_back(token);
    const int child = draft->child(node(), token);
    const bool agrees = child != Tree::kNone;
    if (agrees) path.push_back(child);
    const Timer timer(sequence->stats.seconds.text);
    return sequence->commit(token, agrees, std::move(logprobs)) && agrees;
}

}  // namespace specllama
