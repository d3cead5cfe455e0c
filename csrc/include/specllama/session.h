#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "specllama/beam.h"
#include "specllama/config.h"
#include "specllama/stream.h"
#include "specllama/types.h"

namespace specllama {

class Drafter;
class Scheduler;

// The KV memory of a conversation.
struct SavedState {
    // Which sessions it fits, on one line: sizes of the model, types, llama.cpp's version.
    std::string key;
    std::vector<Token> tokens;
    std::vector<std::uint8_t> memory;
};

// A model with its KV memory and, optionally, a drafter, ready to generate.
//
// The KV memory stays between generations: of the next prompt only what follows the longest common
// prefix is decoded.
//
// With n_seq = 1 working calls from two threads at once throw Busy, and so does starting a
// generation while another thread's is unfinished; a session may move between threads otherwise.
// (But Session::step and Stream::take, by which one thread works for others, wait.) With more, any
// thread may make any call at any time: working calls wait for each other, in the order they came,
// and each step advances all generations together. A drafter that calls the session which is asking
// it gets Busy. Whatever only looks is safe from any thread.
class Session {
 public:
    // Loads the model and allocates its memory. Without a drafter (see drafter.h), a draft model or
    // a corpus it decodes plainly.
    // Throws InvalidArgument, ModelError, OutOfMemory, Interrupted.
    explicit Session(const SessionOptions& options, std::shared_ptr<Drafter> drafter = nullptr);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Token ids of a UTF-8 text. add_special: with the model's BOS and the like; parse_special:
    // the texts of special tokens become those tokens.
    std::vector<Token> tokenize(std::string_view text, bool add_special = true,
                                bool parse_special = true) const;

    // The text of tokens, invalid UTF-8 replaced by U+FFFD. special: show special tokens' texts.
    std::string detokenize(TokenSpan tokens, bool special = false) const;

    // Throws InvalidArgument when `start` would: when the prompt is empty, has ids out of range, or
    // does not fit a context with what is to follow it. Waits for nobody.
    void check(TokenSpan prompt, const GenerateOptions& options) const;

    // Begins a generation; with n_seq = 1, ends an unfinished one of this thread. Nothing is
    // decoded yet. Throws InvalidArgument for what `check` refuses and for a grammar that cannot be
    // read, and Busy when n_seq generations are unfinished (n_seq > 1).
    Stream start(TokenSpan prompt, const GenerateOptions& options);

    // Advances all unfinished generations: one of the long prompts by a chunk, the others by a
    // round. False when there are none. An Error that concerns some of them ends these, and is
    // thrown by their streams.
    bool step();

    // Finds the texts behind a prompt that score best, as beam search does. Speculation changes
    // what it takes, not what it finds, as far as decoding is exact. It has a memory of its own
    // beside that of the generations, and is one call: others wait until it is over, or get Busy.
    // Throws InvalidArgument, also for recurrent and hybrid models; OutOfMemory; DecodeError; Busy;
    // and what `between` throws, which is called before each decode, from this thread. The session
    // is in good order then.
    BeamResult search(
        TokenSpan prompt, const BeamOptions& options, const BetweenRounds& between = [] {});

    // What the generation that ended last, or the state loaded last, has left in the KV memory;
    // and the same put there again, for prompts that begin with its tokens. Saving throws
    // InvalidArgument when nothing has been left; loading, when it is the state of another
    // kind of session or damaged, and then changes nothing. Both throw Busy as `start` does.
    SavedState save();
    void load(const SavedState& state);

    // Frees everything; later calls, also of its streams, throw Closed. Closing twice is fine.
    void close();

    bool closed() const;
    // Whether the calling thread is inside a working call already, in a drafter that is asked.
    bool entered() const;
    // Of one request.
    int n_ctx() const;
    // Requests served at once, and how many more could begin now.
    int n_seq() const;
    int n_free() const;
    int n_vocab() const;
    // The same number for models with the same vocabulary, on every machine.
    std::uint64_t vocabulary() const;
    // [n - 1]: seconds of a decode of n tokens at an empty context, 0 where that is not known, as
    // with a fixed spec_length, unless drafts may come from outside. May wait for a step.
    std::vector<double> decode_seconds() const;
    // Most tokens of a draft that a round verifies; 0: none are.
    int longest_draft() const;
    // Most guesses at a position in one, and most tokens of it, those of all branches included. 1:
    // drafts are chains.
    int most_guesses() const;
    int most_nodes() const;
    // Whether anybody drafts here, beside those outside.
    bool drafts() const;
    // What begins and ends a text; kNoToken if the model has no such token.
    Token bos() const;
    Token eos() const;
    FimTokens fim() const;
    // The model's Jinja chat template, if it has one.
    std::optional<std::string> chat_template() const;
    int n_threads() const;
    // What the model file says it is, e.g. "llama 7B Q8_0".
    std::string model_description() const;
    // Which of the CPU's kernels multiply how much of its weights, e.g. "AMX 76 %, plain 24 %"; ""
    // where a GPU holds weights.
    std::string cpu_kernels() const;

 private:
    std::shared_ptr<Scheduler> scheduler_;
};

// The n-gram drafter: proposes what followed the same tokens earlier in the sequence, or in the
// text given with it, by frequency or as a copy. Throws InvalidArgument when an option is out of
// range.
std::shared_ptr<Drafter> make_ngram_drafter(const NGramOptions& options = {});

}  // namespace specllama
