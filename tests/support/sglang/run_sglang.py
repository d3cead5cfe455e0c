"""Runs SGLang 0.5.23 on a CPU, for which its kernel packages on PyPI are not built.

    python run_sglang.py convert MODEL.gguf FOLDER    # to a float32 model that SGLang reads
    python run_sglang.py serve --model-path FOLDER ...

Child processes of SGLang also run the top of this file.
"""

from __future__ import annotations

import os
import runpy
import sys
import types
from pathlib import Path
from typing import Any

os.environ["SGLANG_USE_CPU_ENGINE"] = "1"

import torch

# A CPU's torch lacks torchvision's operators, but torchvision registers their shapes when imported.
_library = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _library.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


class _NoKernels(types.ModuleType):
    """Replaces the module of CUDA kernels: every name exists, and fails when called."""

    __path__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*args: object, **kwargs: object) -> None:
            raise NotImplementedError(f"{self.__name__}.{name}")

        return missing


sys.modules["sgl_kernel"] = _NoKernels("sgl_kernel")


def convert(gguf: str, folder: str) -> None:
    """Write a GGUF of the architecture llama as a transformers model."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    path = Path(gguf)
    source = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    weights = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32).state_dict()
    config = AutoConfig.from_pretrained(**source)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = LlamaForCausalLM(config).to(torch.float32)
    model.load_state_dict(weights)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)


if __name__ == "__main__":
    if sys.argv[1] == "convert":
        convert(*sys.argv[2:])
    else:
        del sys.argv[1]
        runpy.run_module("sglang.launch_server", run_name="__main__", alter_sys=False)
