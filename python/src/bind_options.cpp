#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/native_enum.h>

#include "bind.h"
#include "specllama/beam.h"
#include "specllama/config.h"
#include "token_array.h"

namespace specllama {

namespace {

// The type in which Python gives a field.
template <typename Field>
using Argument = std::conditional_t<std::is_same_v<Field, std::vector<Token>>, Tokens, Field>;

template <typename Value>
Value&& to_field(Value& value) {
    return std::move(value);
}
std::vector<Token> to_field(Tokens& tokens) { return tokens.to_vector(); }

// Binds a struct. Python makes it with one keyword argument per field, and can read each field.
template <typename Struct, typename... Fields>
void bind_struct(py::module_& m, const char* name,
                 std::pair<const char*, Fields Struct::*>... fields) {
    py::class_<Struct> bound(m, name);
    bound.def(py::init([=](Argument<Fields>... values) {
                  Struct made;
                  ((made.*fields.second = to_field(values)), ...);
                  return made;
              }),
              py::kw_only(), py::arg(fields.first)...);
    (bound.def_readonly(fields.first, fields.second), ...);
}

}  // namespace

void bind_options(py::module_& m) {
    using std::pair;

    py::native_enum<Switch>(m, "Switch", "enum.Enum", "What may be left to circumstances.")
        .value("automatic", Switch::automatic)
        .value("on", Switch::on)
        .value("off", Switch::off)
        .finalize();
    bind_struct<LoraAdapter>(m, "LoraAdapter", pair("path", &LoraAdapter::path),
                             pair("scale", &LoraAdapter::scale));
    bind_struct<ModelOptions>(m, "ModelOptions", pair("path", &ModelOptions::path),
                              pair("n_gpu_layers", &ModelOptions::n_gpu_layers),
                              pair("n_cpu_moe", &ModelOptions::n_cpu_moe),
                              pair("tensor_split", &ModelOptions::tensor_split),
                              pair("device", &ModelOptions::device),
                              pair("rpc", &ModelOptions::rpc), pair("lora", &ModelOptions::lora),
                              pair("load_mode", &ModelOptions::load_mode));
    bind_struct<RopeOptions>(m, "RopeOptions", pair("scaling", &RopeOptions::scaling),
                             pair("scale", &RopeOptions::scale),
                             pair("freq_base", &RopeOptions::freq_base),
                             pair("yarn_orig_ctx", &RopeOptions::yarn_orig_ctx));
    bind_struct<ContextOptions>(
        m, "ContextOptions", pair("n_ctx", &ContextOptions::n_ctx),
        pair("n_seq", &ContextOptions::n_seq), pair("n_batch", &ContextOptions::n_batch),
        pair("n_threads", &ContextOptions::n_threads),
        pair("flash_attn", &ContextOptions::flash_attn), pair("kv_type", &ContextOptions::kv_type),
        pair("rope", &ContextOptions::rope));
    bind_struct<NGramOptions>(m, "NGramOptions", pair("max_order", &NGramOptions::max_order),
                              pair("window", &NGramOptions::window),
                              pair("max_bytes", &NGramOptions::max_bytes),
                              pair("draw", &NGramOptions::draw));
    bind_struct<DraftModelOptions>(
        m, "DraftModelOptions", pair("model", &DraftModelOptions::model),
        pair("mtp", &DraftModelOptions::mtp), pair("context", &DraftModelOptions::context),
        pair("p_min", &DraftModelOptions::p_min),
        pair("temperature", &DraftModelOptions::temperature),
        pair("top_k", &DraftModelOptions::top_k), pair("top_p", &DraftModelOptions::top_p),
        pair("min_p", &DraftModelOptions::min_p));
    bind_struct<SessionOptions>(
        m, "SessionOptions", pair("model", &SessionOptions::model),
        pair("context", &SessionOptions::context),
        pair("spec_length", &SessionOptions::spec_length),
        pair("spec_tree", &SessionOptions::spec_tree),
        pair("draft_model", &SessionOptions::draft_model), pair("corpus", &SessionOptions::corpus),
        pair("verifies", &SessionOptions::verifies), pair("cache_ram", &SessionOptions::cache_ram),
        pair("exact", &SessionOptions::exact));

    py::native_enum<AcceptanceRule>(m, "AcceptanceRule", "enum.Enum",
                                    "What becomes of a draft token.")
        .value("coupled", AcceptanceRule::coupled)
        .value("rejection", AcceptanceRule::rejection)
        .finalize();
    py::native_enum<GrammarSyntax>(m, "GrammarSyntax", "enum.Enum", "How a grammar is written.")
        .value("gbnf", GrammarSyntax::gbnf)
        .value("lark", GrammarSyntax::lark)
        .value("regex", GrammarSyntax::regex)
        .value("json_schema", GrammarSyntax::json_schema)
        .finalize();
    bind_struct<SamplingOptions>(
        m, "SamplingOptions", pair("temperature", &SamplingOptions::temperature),
        pair("top_n_sigma", &SamplingOptions::top_n_sigma), pair("top_k", &SamplingOptions::top_k),
        pair("typical_p", &SamplingOptions::typical_p), pair("top_p", &SamplingOptions::top_p),
        pair("min_p", &SamplingOptions::min_p),
        pair("xtc_probability", &SamplingOptions::xtc_probability),
        pair("xtc_threshold", &SamplingOptions::xtc_threshold),
        pair("repeat_penalty", &SamplingOptions::repeat_penalty),
        pair("frequency_penalty", &SamplingOptions::frequency_penalty),
        pair("presence_penalty", &SamplingOptions::presence_penalty),
        pair("penalty_last_n", &SamplingOptions::penalty_last_n),
        pair("dry_multiplier", &SamplingOptions::dry_multiplier),
        pair("dry_base", &SamplingOptions::dry_base),
        pair("dry_allowed_length", &SamplingOptions::dry_allowed_length),
        pair("dry_penalty_last_n", &SamplingOptions::dry_penalty_last_n),
        pair("dry_sequence_breakers", &SamplingOptions::dry_sequence_breakers),
        pair("logit_bias", &SamplingOptions::logit_bias),
        pair("ignore_eos", &SamplingOptions::ignore_eos),
        pair("logprobs", &SamplingOptions::logprobs),
        pair("processed_logprobs", &SamplingOptions::processed_logprobs),
        pair("seed", &SamplingOptions::seed), pair("acceptance", &SamplingOptions::acceptance),
        pair("lenience", &SamplingOptions::lenience), pair("grammar", &SamplingOptions::grammar),
        pair("grammar_syntax", &SamplingOptions::grammar_syntax),
        pair("grammar_triggers", &SamplingOptions::grammar_triggers),
        pair("reasoning_budget", &SamplingOptions::reasoning_budget),
        pair("reasoning_opening", &SamplingOptions::reasoning_opening),
        pair("reasoning_closing", &SamplingOptions::reasoning_closing));
    py::native_enum<EarlyStopping>(m, "EarlyStopping", "enum.Enum", "When a beam search ends.")
        .value("no", EarlyStopping::no)
        .value("yes", EarlyStopping::yes)
        .value("never", EarlyStopping::never)
        .finalize();
    bind_struct<BeamOptions>(m, "BeamOptions", pair("n_beams", &BeamOptions::n_beams),
                             pair("length_penalty", &BeamOptions::length_penalty),
                             pair("early_stopping", &BeamOptions::early_stopping),
                             pair("max_tokens", &BeamOptions::max_tokens),
                             pair("stop", &BeamOptions::stop),
                             pair("reference", &BeamOptions::reference),
                             pair("cache_prompt", &BeamOptions::cache_prompt));
    bind_struct<RequestDraft>(m, "RequestDraft", pair("tokens", &RequestDraft::tokens),
                              pair("branches", &RequestDraft::branches));
    bind_struct<GenerateOptions>(
        m, "GenerateOptions", pair("max_tokens", &GenerateOptions::max_tokens),
        pair("stop", &GenerateOptions::stop), pair("sampling", &GenerateOptions::sampling),
        pair("reference", &GenerateOptions::reference),
        pair("replayed", &GenerateOptions::replayed),
        pair("generated", &GenerateOptions::generated),
        pair("cache_prompt", &GenerateOptions::cache_prompt),
        pair("draft", &GenerateOptions::draft), pair("trace", &GenerateOptions::trace));
}

}  // namespace specllama
