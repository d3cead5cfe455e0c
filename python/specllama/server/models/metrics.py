"""The counters of several models, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping


def merged(texts: Mapping[str, str]) -> str:
    """Return the metrics of models, each sample with its model as a label.

    Args:
        texts: Metrics as `Metrics.text` returns them, by the models' names.
    """
    groups: dict[str, list[str]] = {}  # lines, by what comes before the first sample
    for name, text in texts.items():
        head = ""
        for line in text.splitlines():
            if line.startswith("# HELP"):
                head = line
            elif line.startswith("#"):
                head += f"\n{line}"
            else:
                groups.setdefault(head, []).append(_labelled(line, name))
    return "".join(f"{head}\n" + "".join(lines) for head, lines in groups.items())


def _labelled(sample: str, name: str) -> str:
    """Return a sample with its model as the first label."""
    escaped = name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    metric, _, value = sample.rpartition(" ")
    metric, bracket, labels = metric.partition("{")
    more = f",{labels}" if bracket else "}"
    return f'{metric}{{model="{escaped}"{more} {value}\n'
