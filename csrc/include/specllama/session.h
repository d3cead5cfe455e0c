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
    // Identifies the sessions that can load it, on one line: sizes of the model, types, llama.cpp's
    // version.
    std::string key;
    std::vector<Token> tokens;
    std::vector<std::uint8_t> memory;
};

// A model with its KV memory and, optionally, a drafter, ready to generate.
//
// The KV memory is kept between generations: only the part of the next prompt after the longest
// common prefix is decoded.
//
// Any thread may make any call at any time. Working calls (start, step, beam_search, save, load,
// erase, close, and steps of streams) wait for each other in order of arrival. Each step advances
// all generations together. close() does not wait for a beam search, but ends it. With n_seq = 1,
// start() ends an unfinished generation of the same thread, and throws Busy while one of another
// thread is unfinished. A drafter that makes a working call to the session that calls it gets Busy;
// calls that only read are allowed.
class Session {
 public:
    // Loads the model and allocates its memory. Without any drafter, here or in the options,
    // decoding is plain. Throws InvalidArgument, ModelError, OutOfMemory, Interrupted.
    explicit Session(const SessionOptions& options, std::shared_ptr<Drafter> drafter = nullptr);
    // A session with a remote target. Of `options`, only those about drafts and context.n_seq are
    // used. Throws what the other constructor throws.
    Session(const SessionOptions& options, std::shared_ptr<Verifier> verifier,
            std::shared_ptr<Drafter> drafter);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Token ids of a UTF-8 text. add_special: add the model's BOS and similar tokens.
    // parse_special: texts of special tokens become those tokens. plain: parts of the text in which
    // texts of control tokens remain plain text.
    std::vector<Token> tokenize(std::string_view text, bool add_special = true,
                                bool parse_special = true, TextRanges plain = {}) const;

    // The text of tokens; invalid UTF-8 becomes U+FFFD. special: show special tokens' texts.
    std::string detokenize(TokenSpan tokens, bool special = false) const;

    // The bytes that a token adds to a text, also those of special tokens. They may begin or end
    // inside a character. Throws InvalidArgument for an unknown id.
    std::string piece(Token token) const;

    // The vocabulary, for a Verifier in another process.
    VocabularyTable vocabulary_table() const;

    // A prompt of texts, images and sounds, for `check` and `start`. Between the tokens of the
    // texts come those of the images and sounds, and those that the model expects around them. Only
    // this session can use it. Throws InvalidArgument if the model does not support images or
    // sounds, or a part cannot be used.
    MediaPrompt media_prompt(std::span<const PromptPart> parts) const;

    // Number of images or tiles and pieces of sounds that the projector has encoded so far. Those
    // in the KV memory, and the last ones, are not encoded again.
    int n_encoded() const;

    // Makes the checks of `start` without waiting: throws InvalidArgument if the prompt is empty,
    // has ids out of range, or leaves no room in the context for the generation, or if an option
    // cannot be used.
    void check(TokenSpan prompt, const GenerateOptions& options) const;
    void check(const MediaPrompt& prompt, const GenerateOptions& options) const;

    // Begins a generation; nothing is decoded yet. With n_seq = 1, an unfinished generation of this
    // thread ends first. Throws InvalidArgument for what `check` refuses, for an invalid grammar,
    // and if the options could not have generated `generated`; Busy if n_seq generations are
    // unfinished (n_seq > 1).
    Stream start(TokenSpan prompt, const GenerateOptions& options);
    Stream start(const MediaPrompt& prompt, const GenerateOptions& options);

    // Advances all unfinished generations: long prompts by a shared batch, the others by a round
    // each. Returns false if there are none. An Error ends the generations that it concerns; their
    // streams throw it.
    bool step();

    // Finds the best-scoring texts after a prompt by beam search. Speculation changes the time, not
    // the result, if decoding is exact. The search has a separate KV memory. Other calls wait until
    // it is over. `between` is called before each round, from this thread. Throws InvalidArgument,
    // also for recurrent and hybrid models; OutOfMemory; DecodeError; Busy; Closed, also when the
    // session is closed meanwhile; and what `between` throws. The session stays usable after all of
    // these except Closed.
    BeamResult beam_search(
        TokenSpan prompt, const BeamOptions& options, const BetweenRounds& between = [] {});

    // save() returns the content of a slot of the KV memory. load() puts a saved state into a slot,
    // for prompts that begin with its tokens. erase() empties a slot and returns the number of
    // tokens it held. slot -1: the slot of the generation that ended last, or of the state loaded
    // last; for load(), the one that a new prompt would get. All throw Busy while the slot is in
    // use. save() throws InvalidArgument if the slot is empty. load() throws it, and changes
    // nothing, if the state is damaged or from another kind of session.
    SavedState save(int slot = -1);
    void load(const SavedState& state, int slot = -1);
    int erase(int slot);

    // Frees everything; later calls, also of its streams, throw Closed. Closing twice is fine.
    void close();

    bool closed() const;
    // Whether the calling thread is inside a working call, that is, in a drafter's function.
    bool entered() const;
    // Properties of the session; valid as long as this object.
    const SessionInfo& info() const;
    // Number of requests that could begin now.
    int n_free() const;
    // [n - 1]: seconds of a target decode of n tokens at an empty context; 0: unknown. All are
    // unknown with a fixed spec_length, unless the session verifies. May wait for a step to end.
    // Measures first if the session has not yet, but not in a drafter's function.
    std::vector<double> decode_seconds() const;

 private:
    std::shared_ptr<Scheduler> scheduler_;
};

}  // namespace specllama
