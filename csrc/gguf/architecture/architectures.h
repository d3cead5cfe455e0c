#pragma once

#include <string_view>

namespace specllama {

// What this library knows of one of llama.cpp's architectures, beyond what a model's file states:
// one row of a table. Most architectures need no row: the defaults are theirs.
struct Architecture {
    // model: generates text token by token. encoder: makes vectors of a text, or needs an encoder
    // pass first. The others only draft for a model. eagle3, block: from the inputs of some of its
    // layers, token by token or several tokens at once. assistant: from its hidden states and its
    // KV memory.
    enum class Kind { model, encoder, eagle3, block, assistant };

    // An architecture of which one layer in `period` sees the whole text and the others have
    // sliding windows, unless the file says which; 0: there is no such pattern.
    struct Windows {
        int period = 0;
        bool whole_first = false;  // that layer is the first of the period, not the last
        int length = 0;            // tokens of a window, if the file does not state it
    };

    std::string_view name;
    Kind kind = Kind::model;

    // What drafts for it. layer_inputs: llama.cpp's graph hands out the inputs of the layers, one
    // row per token, which EAGLE-3 heads and block drafters read; last_output: also the output of
    // the last layer, as the input of one more. assistant: an assistant may draft for it.
    bool layer_inputs = false;
    bool last_output = false;
    bool assistant = false;

    // Its layers of multi-token prediction, of which llama.cpp has a graph with an attention memory
    // of its own. one: a single layer drafts all tokens. chain: there may be several, of which each
    // drafts one token. mtp_crops: the graph gives states only of rows that ask for logits.
    enum class Mtp { none, one, chain };
    Mtp mtp = Mtp::none;
    bool mtp_crops = false;

    // What its memory can do. snapshots: llama.cpp keeps snapshots of recurrent states.
    // one_sequence: it decodes one sequence rightly, but not several at once. hidden_windows: it
    // has sliding windows that llama_model_n_swa does not report. one_kv_type: keys and values must
    // be of one type.
    bool snapshots = false;
    bool one_sequence = false;
    bool hidden_windows = false;
    bool one_kv_type = false;
    Windows windows = {};

    // Whether it reads states of a target.
    bool is_head() const {
        return kind == Kind::eagle3 || kind == Kind::block || kind == Kind::assistant;
    }
};

// The row of a name from general.architecture; the defaults if there is none.
const Architecture& architecture(std::string_view name);

}  // namespace specllama
