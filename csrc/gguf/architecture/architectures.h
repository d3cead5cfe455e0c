#pragma once

#include <string_view>

namespace specllama {

// Properties of one of llama.cpp's architectures that a model's file does not state: one row of a
// table. Most architectures have the defaults and need no row.
struct Architecture {
    // model: generates text token by token. encoder: computes vectors of a text, or needs an
    // encoder pass first. The others only draft for a model. eagle3, block: from the inputs of some
    // of its layers, token by token (eagle3) or several tokens at once (block). assistant: from its
    // hidden states and its KV memory.
    enum class Kind { model, encoder, eagle3, block, assistant };

    // One layer in `period` attends to the whole text, and the others have sliding windows, unless
    // the file states a pattern. 0: no such pattern.
    struct Windows {
        int period = 0;
        bool whole_first = false;  // whether that layer is the first of the period, not the last
        int length = 0;            // tokens of a window, if the file does not state it
    };

    std::string_view name;
    Kind kind = Kind::model;

    // What can draft for it. layer_inputs: llama.cpp's graph provides the inputs of the layers, one
    // row per token, which EAGLE-3 heads and block drafters read. last_output: also the output of
    // the last layer, as the input of one more layer. assistant: an assistant can draft for it.
    bool layer_inputs = false;
    bool last_output = false;
    bool assistant = false;

    // Its layers of multi-token prediction, for which llama.cpp has a graph with a separate
    // attention memory. one: a single layer drafts all tokens. chain: there may be several layers,
    // and each drafts one token. mtp_crops: the graph provides states only for rows with logits.
    enum class Mtp { none, one, chain };
    Mtp mtp = Mtp::none;
    bool mtp_crops = false;

    // Properties of its memory. snapshots: llama.cpp keeps snapshots of recurrent states.
    // one_sequence: llama.cpp decodes one sequence correctly, but not several at once.
    // hidden_windows: it has sliding windows that llama_model_n_swa does not report. one_kv_type:
    // keys and values must have the same type.
    bool snapshots = false;
    bool one_sequence = false;
    bool hidden_windows = false;
    bool one_kv_type = false;
    Windows windows = {};

    // Whether it reads hidden states of a target.
    bool is_head() const {
        return kind == Kind::eagle3 || kind == Kind::block || kind == Kind::assistant;
    }
};

// The row for a name from general.architecture; the defaults if there is none.
const Architecture& architecture(std::string_view name);

}  // namespace specllama
