"""Arguments of other libraries for opening a model, and their names in SpecSession."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from specllama import _core

_SAY_INSTEAD = {
    **dict.fromkeys(("model_path", "path", "model_name", "pretrained_model_name_or_path"),
                    'the model is the first argument: SpecSession("model.gguf")'),
    **dict.fromkeys(("draft_model", "speculative_model", "assistant_model"), "give draft="),
    **dict.fromkeys(("context_length", "num_ctx", "max_seq_len", "max_model_len", "ctx_size"),
                    "give n_ctx="),
    **dict.fromkeys(("n_thread", "threads", "num_threads", "n_threads_batch"), "give n_threads="),
    **dict.fromkeys(("n_gpu", "gpu_layers", "ngl", "num_gpu_layers"), "give n_gpu_layers="),
    **dict.fromkeys(("main_gpu", "split_mode"), "give device=, the names of the GPUs"),
    **dict.fromkeys(("type_k", "type_v", "cache_type_k", "cache_type_v"),
                    'give kv_type=, both as in "q8_0/q5_1"'),
    **dict.fromkeys(("use_mmap", "use_mlock", "mlock", "no_mmap"), 'give load_mode=, e.g. "mlock"'),
    **dict.fromkeys(("n_parallel", "parallel", "num_parallel"), "give n_seq="),
    **dict.fromkeys(("lora_path", "lora_base", "lora_scale", "adapter"), "give lora="),
    **dict.fromkeys(("flash_attention", "attn_implementation"), "give flash_attn="),
    **dict.fromkeys(("chat_format", "chat_handler"),
                    "the model's own template is used; give another one as chat_template="),
    **dict.fromkeys(("num_pred_tokens", "draft_max", "num_speculative_tokens", "num_draft_tokens"),
                    "give spec_length="),
    **dict.fromkeys(("repo_id", "filename"), "call SpecSession.from_pretrained"),
    "rope_freq_scale": "give rope_scale=, its inverse",
    "n_ubatch": "give n_batch=",
    "logits_all": "leave it out; generate(..., logprobs=5) has log-probabilities",
    "embedding": "embeddings are not supported",
}  # fmt: skip


def advice(name: str, known: Collection[str]) -> str:
    """Return what to give instead of an argument that SpecSession does not have, as the end of a
    sentence."""
    if said := _SAY_INSTEAD.get(name):
        return f"{said}."
    if name in {option.name for option in _core.generate_options()}:
        return f"it is an option of each call, as in generate(prompt, {name}=...)."
    alike = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {alike[0]}?" if alike else "see help(SpecSession)."
