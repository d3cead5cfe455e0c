"""A model whose caller waits for what it generates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, overload

from typing_extensions import Unpack

from specllama import _check, _core
from specllama._progress import Progress
from specllama.async_model import AsyncModel
from specllama.chat import Message
from specllama.errors import ArgumentError
from specllama.options import GenerateOptions
from specllama.request import Request
from specllama.stream import Generation, Stream


class SyncModel(AsyncModel):
    """A loaded model that continues prompts while the caller waits."""

    def __init__(
        self, core: _core.Session, path: str, *, max_queue: int, progress: Progress
    ) -> None:
        super().__init__(core, path, max_queue=max_queue)
        self._progress = progress
        self._last: Callable[[], Generation | None] = lambda: None

    @overload
    def generate(
        self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]
    ) -> Generation: ...
    @overload
    def generate(
        self, prompt: str | Iterable[int], *, n: int, **options: Unpack[GenerateOptions]
    ) -> list[Generation]: ...
    @overload
    def generate(
        self, prompt: list[str] | list[list[int]], **options: Unpack[GenerateOptions]
    ) -> list[Generation]: ...
    @overload
    def generate(
        self, prompt: list[str] | list[list[int]], *, n: int, **options: Unpack[GenerateOptions]
    ) -> list[list[Generation]]: ...
    def generate(
        self,
        prompt: str | Iterable[int] | list[str] | list[list[int]],
        *,
        n: int | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation | list[Generation] | list[list[Generation]]:
        """Continue a prompt, or several, and return the whole.

        Args:
            prompt: A text, or token ids. Texts of special tokens in it become those tokens, and
                the model's BOS is put before it, as llama.cpp does. A list of prompts gives a list
                of results in the same order, each as if it had been alone.
            n: How many choices to give; they come as a list. The first has the seed that was given
                or a fresh one, each other a seed made of that one.
            **options: See `GenerateOptions`: max_tokens, stop, echo, temperature, top_k, top_p,
                min_p, repeat_penalty, frequency_penalty, presence_penalty, penalty_last_n,
                logit_bias, logprobs, processed_logprobs, seed, acceptance, lenience, grammar,
                json_schema, reference, trace.

        Returns:
            The text, its tokens, why it ended, and statistics. After Ctrl-C, or an error on the
            way, `last` has what there was.

        Raises:
            ArgumentError: The prompt is empty, leaves no room in the context, or has ids that are
                no tokens; or an option is wrong.
            DecodeError: llama.cpp failed.
            ClosedError: The session is closed.
            BusyError: With n_seq=1: another thread is using the session.
        """
        several = _are_several(prompt)
        prompts: list[Any] = list(prompt) if several else [prompt]
        if n is None and not several and self._core.n_seq == 1:
            return _whole(self.stream(prompts[0], **options))
        n_choices = 1 if n is None else _check.integer("n", n, low=1)
        choices = [Request.choices(self, one, options, n_choices) for one in prompts]
        handles = self._submit(chain.from_iterable(choices), wait=True)
        self._last = handles[-1].so_far
        try:
            answers = [handle.result() for handle in handles]
        finally:
            for handle in handles:
                handle.cancel()
        if n is None:
            return answers if several else answers[0]
        by_prompt = [answers[i : i + n_choices] for i in range(0, len(answers), n_choices)]
        return by_prompt if several else by_prompt[0]

    def stream(self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]) -> Stream:
        """Continue a prompt and return an iterator over the chunks as they become certain.

        Arguments and errors are those of `generate`, and BusyError when n_seq others are
        unfinished; `echo` concerns the text of `Stream.result()`. The stream may be left at any
        time.
        """
        return self._start(Request.make(self, prompt, options))

    def replay(
        self,
        prompt: str | Iterable[int],
        text: str | Iterable[int],
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Generate as if the model had chosen a given text: for measuring on text of one's own.

        Every decode, choice, draft, verification and rewind is really done; only what the model
        chooses is put aside for what the text has there. So real text meets real cost, also with
        models too small to have written it.

        Args:
            prompt: As for `generate`.
            text: What is generated, as text or token ids; the context must have room for it.
            **options: As for `generate`, without stop, grammar and max_tokens, which have no say.

        Raises:
            ArgumentError: The text is empty, or as for `generate`.
        """
        for name in ("stop", "grammar", "json_schema", "max_tokens"):
            if name in options:
                raise ArgumentError(f"replay takes no {name}: the text decides.")
        tokens = (
            self.tokenize(text, add_special=False)
            if isinstance(text, str)
            else _check.tokens("text", text)
        )
        if not tokens:
            raise ArgumentError("The text to replay is empty; give at least one token.")
        options = {**options, "max_tokens": len(tokens)}
        return _whole(self._start(Request.make(self, prompt, options, replayed=tokens)))

    def _start(self, request: Request) -> Stream:
        record = request.begin(self._core)
        self._last = record.result
        return Stream(record, len(request.tokens), self._progress.prefill())

    def chat(
        self,
        messages: Sequence[Message],
        *,
        template_args: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Answer the last message of a conversation, by the model's own chat template.

        Args:
            messages: As {"role": "user", "content": "..."}; the whole conversation, every time:
                what is known of it already is not decoded again.
            template_args: Passed to the template, e.g. {"enable_thinking": False}.
            **options: As for `generate`.

        Raises:
            ModelError: The model has no chat template.
            ArgumentError: The template refuses the messages; or as for `generate`.
        """
        return self.generate(self.render_chat(messages, template_args), **options)

    def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        template_args: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Stream:
        """The same as `chat`, chunk by chunk: see `stream`."""
        return self.stream(self.render_chat(messages, template_args), **options)

    @property
    def last(self) -> Generation | None:
        """The most recent generation as far as it came, also when it was interrupted. May be read
        from any thread."""
        return self._last()


def _are_several(prompt: Any) -> bool:
    """Return whether it is a list of prompts, not of token ids."""
    if not isinstance(prompt, (list, tuple)) or not prompt:
        return False
    return all(isinstance(one, (str, list, tuple)) for one in prompt)


def _whole(stream: Stream) -> Generation:
    """Read a stream to its end, and leave the session in order if that fails."""
    try:
        for _ in stream:
            pass
    finally:
        stream.close()
    return stream.result()
