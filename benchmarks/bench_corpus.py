"""The speed of building, opening and searching a corpus of real text.

    python benchmarks/bench_corpus.py

Uses the Python sources of the standard library and of the installed packages with the bundled
model's tokenizer. It searches for the ends of texts that are not in the corpus. The time of a
search includes the call from Python; the time of a call with nothing to search is printed next to
it.
"""

from __future__ import annotations

import random
import statistics
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from specllama import _core
from specllama.session import BUNDLED_MODEL

Tokens = NDArray[np.int32]
N_SEARCHES = 20_000


def sources() -> list[Path]:
    folders = {sysconfig.get_paths()[name] for name in ("stdlib", "purelib")}
    paths = {path for folder in folders for path in Path(folder).glob("**/*.py")}
    files = sorted(paths)
    random.Random(1).shuffle(files)
    return files


def microseconds(corpus: _core.Corpus, texts: list[Tokens]) -> tuple[float, float]:
    """Return the median and the 99th percentile of the time of a search."""
    times = []
    for text in texts:
        start = time.perf_counter()
        corpus.predict(text, 0)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6, float(np.percentile(times, 99)) * 1e6


def main() -> None:
    tokenizer = _core.Tokenizer(str(BUNDLED_MODEL))
    files = sources()

    def tokens(path: Path) -> Tokens:
        return tokenizer.tokenize(path.read_text(errors="replace"), add_special=False)

    texts = [tokens(path) for path in files[:40]]
    ends = [text[max(0, end - 64) : end] for text in texts for end in range(1, len(text))]
    random.Random(2).shuffle(ends)
    ends = ends[:N_SEARCHES]
    print("    tokens  bytes per token  tokenize  index   open  found  search (99 %)    bare call")
    for n in (1_000_000, 10_000_000):
        builder = _core.CorpusBuilder(n)
        start = time.perf_counter()
        for path in files[40:]:
            builder.append(tokens(path))
            builder.end_text()
            if builder.full:
                break
        tokenized = time.perf_counter() - start
        with tempfile.TemporaryDirectory() as folder:
            name = str(Path(folder) / "bench.corpus")
            start = time.perf_counter()
            builder.write(name, tokenizer.n_vocab, tokenizer.fingerprint)
            written = time.perf_counter() - start
            start = time.perf_counter()
            corpus = _core.Corpus(name)
            opened = time.perf_counter() - start
            found = statistics.fmean(bool(corpus.predict(text, 1)) for text in ends)
            median, most = microseconds(corpus, ends)
            bare, _ = microseconds(corpus, [text[:3] for text in ends])
        print(
            f"{corpus.n_tokens:>10,}  {corpus.size_bytes / corpus.n_tokens:>15.2f}"
            f"  {tokenized:>6.1f} s  {written:>3.1f} s  {opened * 1e3:>2.0f} ms  {found:>5.0%}"
            f"  {median:.2f} us ({most:.1f} us)  {bare:.2f} us"
        )


if __name__ == "__main__":
    main()
