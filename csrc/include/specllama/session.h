#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "specllama/beam.h"
#include "specllama/generate_options.h"
#include "specllama/media.h"
#include "specllama/session_info.h"
#include "specllama/session_options.h"
#include "specllama/stream.h"
#include "specllama/types.h"
#include "specllama/verifier.h"

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
// The KV memory is kept between generations: only the part of the next prompt behind the longest
// common prefix is decoded.
//
// Any thread may make any call at any time: calls that work wait for each other, in the order in
// which they came, and each step advances all generations together. Only close() does not wait for
// a beam search, which it ends. With n_seq = 1, start() ends an unfinished generation of the same
// thread, and throws Busy while one of another thread is unfinished. A drafter that makes a
// working call to the session which is asking it gets Busy; what only reads, it may call.
class Session {
 public:
    // Loads the model and allocates its memory. Without a drafter (see drafter.h), a draft model or
    // a corpus, the session decodes plainly.
    // Throws InvalidArgument, ModelError, OutOfMemory, Interrupted.
    explicit Session(const SessionOptions& options, std::shared_ptr<Drafter> drafter = nullptr);
    // A session whose target is elsewhere. Of `options` those count that concern drafts, and
    // context.n_seq. Throws what the other constructor throws.
    Session(const SessionOptions& options, std::shared_ptr<Verifier> verifier,
            std::shared_ptr<Drafter> drafter);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Token ids of a UTF-8 text. add_special: with the model's BOS and the like; parse_special:
    // the texts of special tokens become those tokens; plain: parts of the text in which those of
    // control tokens do not.
    std::vector<Token> tokenize(std::string_view text, bool add_special = true,
                                bool parse_special = true, TextRanges plain = {}) const;

    // The text of tokens, invalid UTF-8 replaced by U+FFFD. special: show special tokens' texts.
    std::string detokenize(TokenSpan tokens, bool special = false) const;

    // The bytes that a token adds to a text, special tokens' texts included. They may begin or end
    // inside a character. Throws InvalidArgument if there is no such token.
    std::string piece(Token token) const;

    // The vocabulary, for a Verifier elsewhere.
    VocabularyTable vocabulary_table() const;

    // The prompt of texts, images and sounds, for `check` and `start`: between the texts' tokens
    // come those of the images, and those that the model expects around them. It may be used by
    // this session only. Throws InvalidArgument if the model does not see or hear, or a part cannot
    // be used.
    MediaPrompt media_prompt(std::span<const PromptPart> parts) const;

    // Makes the checks of `start` without waiting: throws InvalidArgument if the prompt is empty,
    // has ids out of range, or leaves no room in the context for what is to follow, or if an option
    // cannot be used.
    void check(TokenSpan prompt, const GenerateOptions& options) const;
    void check(const MediaPrompt& prompt, const GenerateOptions& options) const;

    // Begins a generation; nothing is decoded yet. With n_seq = 1, an unfinished generation of this
    // thread ends first. Throws InvalidArgument for what `check` refuses, for a grammar that cannot
    // be read and for tokens that cannot have been generated; Busy when n_seq generations are
    // unfinished (n_seq > 1).
    Stream start(TokenSpan prompt, const GenerateOptions& options);
    Stream start(const MediaPrompt& prompt, const GenerateOptions& options);

    // Advances all unfinished generations: long prompts by a shared batch, the others by a round
    // each. Returns false if there are none. An Error ends the generations that it concerns, and
    // is thrown by their streams.
    bool step();

    // Finds the texts behind a prompt that score best, by beam search. Speculation changes how long
    // that takes, not what is found, as far as decoding is exact. The search has a memory of its
    // own beside that of the generations. It is one call: other calls wait until it is over.
    // `between` is called before each round, from this thread. Throws InvalidArgument, also for
    // recurrent and hybrid models; OutOfMemory; DecodeError; Busy; Closed, also when the session is
    // closed meanwhile; and what `between` throws. The session stays usable after any but Closed.
    BeamResult beam_search(
        TokenSpan prompt, const BeamOptions& options, const BetweenRounds& between = [] {});

    // save() returns what is left in a slot of the KV memory, load() puts a saved state into one,
    // for prompts that begin with its tokens, and erase() empties one and returns how many tokens
    // it held. slot -1: the slot of the generation that ended last, or of the state loaded last;
    // for load() the one that has been free the longest. All throw Busy while the slot is in use.
    // save() throws InvalidArgument if nothing has been left; load() throws it, and changes
    // nothing, if the state is damaged or from another kind of session.
    SavedState save(int slot = -1);
    void load(const SavedState& state, int slot = -1);
    int erase(int slot);

    // Frees everything; later calls, also of its streams, throw Closed. Closing twice is fine.
    void close();

    bool closed() const;
    // Whether the calling thread is already inside a working call: in a drafter that is being
    // asked.
    bool entered() const;
    // What the session is; valid for as long as this object.
    const SessionInfo& info() const;
    // How many more requests could begin now.
    int n_free() const;
    // [n - 1]: seconds of a target decode of n tokens at an empty context; 0: unknown. All are
    // unknown with a fixed spec_length, unless the session verifies. May wait for a step to end.
    std::vector<double> decode_seconds() const;

 private:
    std::shared_ptr<Scheduler> scheduler_;
};

}  // namespace specllama
