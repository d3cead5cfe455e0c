"""Write a trained model as GGUF: `python models/export.py WEIGHTS.pt OUT.gguf --type q8_0`."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

import gguf
from block import BLOCK, MASK, BlockDrafter
from corpus import END
from gguf import (
    GGMLQuantizationType,
    GGUFReader,
    GGUFValueType,
    GGUFWriter,
    LlamaFileType,
    TokenType,
)
from head import Head
from network import CONTEXT, Config, Network, load
from state_reader import StateReader, layers_read
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

    role: "target" or "draft", for the name in the metadata. The same arguments give the same bytes.
    """
    writer = GGUFWriter(path, "llama")
    writer.add_type("model")
    writer.add_description(
        "One of a pair, target and draft model, trained from scratch on CPython's standard "
        "library to demonstrate and test speculative decoding."
    )
    writer.add_name(f"specllama-stdlib-{role}")
    writer.add_license("PSF-2.0")
    _add_sizes(writer, network.config)
    _add_tokenizer(writer, tokenizer)
    _write(writer, network, weight_type)


def export_head(head: StateReader, target: Path, path: Path, weight_type: str) -> None:
    """Write a head or block drafter for the target in a file, with the target's vocabulary and
    licence."""
    fields = GGUFReader(target).fields
    name = fields["general.name"].contents() if "general.name" in fields else target.stem
    writer = GGUFWriter(path, head.architecture)
    writer.add_type("model")
    writer.add_name(f"{name} {head.title}")
    writer.add_description(f"A draft for {name}: {head.title}.")
    for key, field in fields.items():
        if key.startswith("tokenizer.ggml.") or key == "general.license":
            of = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(key, field.contents(), field.types[0], of)
    _add_sizes(writer, dataclasses.replace(head.config, layers=head.layers))
    writer.add_array(f"{head.architecture}.target_layers", layers_read(head.config))
    if isinstance(head, Head):
        writer.add_uint32("eagle3.target_hidden_size", head.config.width)
    if isinstance(head, BlockDrafter):
        writer.add_uint32("dflash.block_size", BLOCK)
        writer.add_mask_token_id(MASK)
    _write(writer, head, weight_type)


def _write(writer: GGUFWriter, network: nn.Module, weight_type: str) -> None:
    tensor_type, file_type = TYPES[weight_type]
    writer.add_file_type(file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for name, parameter in network.state_dict().items():
        if not parameter.is_floating_point():
            writer.add_tensor(name, parameter.numpy())
            continue
        weight = parameter.float().numpy()
        kind = tensor_type if weight.ndim == 2 else GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_sizes(writer: GGUFWriter, config: Config) -> None:
    writer.add_vocab_size(config.vocabulary)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.ffn)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.heads_kv or config.heads)
    writer.add_layer_norm_rms_eps(config.norm_epsilon)
    writer.add_rope_dimension_count(config.head_width)
    writer.add_rope_freq_base(config.rope_base)


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
    parser.add_argument(
        "weights", type=Path, help="target.pt or draft.pt, with tokenizer.json in its folder"
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--type", choices=TYPES, default="q8_0", help="default: %(default)s")
    arguments = parser.parse_args()
    network, tokenizer = load(arguments.weights)
    export(network, tokenizer, arguments.out, arguments.type, role=arguments.weights.stem)


if __name__ == "__main__":
    main()
