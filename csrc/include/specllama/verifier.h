#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "specllama/generate_options.h"
#include "specllama/session_info.h"
#include "specllama/types.h"

namespace specllama {

// A vocabulary as a table, for processes without the model's file.
struct VocabularyTable {
    std::vector<std::string> pieces;  // [token]: its bytes, special tokens' texts included
    std::vector<Token> hidden;        // tokens that add no text unless special tokens are shown
    std::vector<Token> ends;          // tokens that end a text
    // Marks a corpus of its tokens; see Tokenizer::fingerprint.
    std::uint64_t text_fingerprint = 0;
};

// Properties of a verifier. They never change.
struct VerifierInfo {
    // n_seq is ignored: the session decides it.
    SessionInfo session;
    VocabularyTable vocabulary;
    // As Session::decode_seconds; may be empty.
    std::vector<double> decode_seconds;
    // Seconds of some round trips, for the first plans; may be empty.
    std::vector<double> round_trips;
};

// A new text.
struct VerifiedText {
    SequenceId sequence = 0;
    TokenSpan prompt;
    TokenSpan generated;  // by an earlier request, before it broke off
    int max_tokens = 0;   // of the generation, `generated` included
    // The seed is set. The verifier follows grammar and reasoning_budget, too.
    SamplingOptions sampling;
    // Whether the target reuses the part of the prompt that its KV memory holds.
    bool cache_prompt = true;
};

// A draft to verify. All of it is valid only during the call.
struct VerifyRequest {
    SequenceId sequence = 0;
    TokenSpan tokens;     // prompt and generation so far
    int n_prompt = 0;     // tokens of the prompt
    RequestDraft* draft;  // may be empty
};

struct VerifyAnswer {
    // The target's next tokens: those of the draft that it agrees with, and at least the one after
    // them. Without the token that ends the text.
    std::vector<Token> tokens;
    std::vector<TokenLogprobs> logprobs;  // [i]: of tokens[i], if requested
    double seconds = 0;                   // of the target's decode
    int n_verified = 0;                   // tokens of the draft that were verified
    // Why the text has ended for the target; none: it continues.
    FinishReason finish_reason = FinishReason::none;
    bool exact = false;  // see Stats::exact
    int n_reused = 0;    // see Stats::reused_tokens
    // An error, which ends only this text; null: none.
    std::exception_ptr error;
};

// The interface of a target outside this process: it verifies a session's drafts. The session
// handles stop strings. Calls come from one thread at a time, except for tokenize(), detokenize()
// and info().
class Verifier {
 public:
    Verifier() = default;
    Verifier(const Verifier&) = delete;
    Verifier& operator=(const Verifier&) = delete;
    virtual ~Verifier() = default;

    virtual const VerifierInfo& info() const = 0;

    // As in Session.
    virtual std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special,
                                        TextRanges plain) const = 0;
    virtual std::string detokenize(TokenSpan tokens, bool special) const = 0;

    // A text begins; forget what is known about this sequence id. Does not wait for the target.
    virtual void begin(const VerifiedText& text) = 0;
    // Given texts that have begun and have no answer yet, returns those whose prompts the target
    // has read, or that have failed. If `waits`, it may wait briefly for one.
    virtual std::vector<SequenceId> prefilled(std::span<const SequenceId> sequences,
                                              bool waits) = 0;
    // Verifies drafts, all at once. [i]: the answer to requests[i]. The first draft of a text is
    // empty.
    virtual std::vector<VerifyAnswer> verify(std::span<const VerifyRequest> requests) = 0;
    // The text is over, finished or cancelled. Does not wait for the target.
    virtual void end(SequenceId sequence) = 0;
};

}  // namespace specllama
