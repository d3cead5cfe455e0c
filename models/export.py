"""Write a trained model as GGUF: `python models/export.py WEIGHTS.pt OUT.gguf --type q8_0`."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

import gguf
from corpus import END
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType, TokenType
from head import LAYERS, Head
from network import CONTEXT, NORM_EPSILON, ROPE_BASE, Config, Network, load
from tokenizers import Tokenizer
from torch import nn

TYPES = {
    "f32": (GGMLQuantizationType.F32, LlamaFileType.ALL_F32),
    "f16": (GGMLQuantizationType.F16, LlamaFileType.MOSTLY_F16),
    "q8_0": (GGMLQuantizationType.Q8_0, LlamaFileType.MOSTLY_Q8_0),
}
"""Weight types to choose from. Norms stay float32 in all of them."""


def export(network: Network, tokenizer: Tokenizer, path: Path, weight_type: str, role: str) -> None:
    """Write `path`: weights as `weight_type` (a key of `TYPES`), tokenizer and metadata.

    role: "target" or "draft", for the name the file carries. The same arguments give the
    same bytes.
    """
    writer = GGUFWriter(path, "llama")
    writer.add_type("model")
    writer.add_description(
        "One of a pair, target and draft model, trained from scratch on CPython's standard "
        "library to demonstrate and test speculative decoding."
    )
    _add_facts(writer, network.config, role)
    _write(writer, network, tokenizer, weight_type)


def export_head(head: Head, tokenizer: Tokenizer, path: Path, weight_type: str) -> None:
    """The same for a head, which has no embeddings and no output of its own."""
    writer = GGUFWriter(path, "eagle3")
    writer.add_type("model")
    writer.add_description(
        "An EAGLE-3 head for specllama-stdlib-target, trained on CPython's standard library."
    )
    _add_facts(writer, dataclasses.replace(head.config, layers=1), "head")
    writer.add_array("eagle3.target_layers", LAYERS)
    writer.add_uint32("eagle3.target_hidden_size", head.config.width)
    _write(writer, head, tokenizer, weight_type)


def _write(writer: GGUFWriter, network: nn.Module, tokenizer: Tokenizer, weight_type: str) -> None:
    tensor_type, file_type = TYPES[weight_type]
    writer.add_file_type(file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    _add_tokenizer(writer, tokenizer)
    for name, parameter in network.state_dict().items():
        weight = parameter.float().numpy()
        kind = tensor_type if weight.ndim == 2 else GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_facts(writer: GGUFWriter, config: Config, role: str) -> None:
    writer.add_name(f"specllama-stdlib-{role}")
    writer.add_license("PSF-2.0")
    writer.add_vocab_size(config.vocabulary)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.ffn)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.heads)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)
    writer.add_rope_dimension_count(config.head_width)
    writer.add_rope_freq_base(ROPE_BASE)


def _add_tokenizer(writer: GGUFWriter, tokenizer: Tokenizer) -> None:
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    end = model["vocab"][END]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [TokenType.CONTROL if i == end else TokenType.NORMAL for i in range(len(tokens))]
    )
    writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    writer.add_bos_token_id(end)
    writer.add_eos_token_id(end)
    writer.add_add_bos_token(True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, help="target.pt or draft.pt beside tokenizer.json")
    parser.add_argument("out", type=Path)
    parser.add_argument("--type", choices=TYPES, default="q8_0", help="default: %(default)s")
    arguments = parser.parse_args()
    network, tokenizer = load(arguments.weights)
    export(network, tokenizer, arguments.out, arguments.type, role=arguments.weights.stem)


if __name__ == "__main__":
    main()
