"""Log-likelihoods from an OpenAI-compatible completions server (SGLang, vLLM, llama-cpp-python, …)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ensue.backends.endpoint.client import CutShort, GaveUp, Rejected, parse_address
from ensue.backends.endpoint.flight import Once
from ensue.backends.endpoint.identity import PROBES, Behaviour
from ensue.backends.endpoint.reply import (
    PlacedToken,
    boundary_unsure,
    divide,
    place_tokens,
    score_numbered,
    score_placed,
)
from ensue.backends.endpoint.served import ServedModel, check_sendable, written_text
from ensue.backends.endpoint.styles import (
    ECHO,
    GENERATE,
    PROMPT_LOGPROBS,
    SCORING,
    Prompt,
    Reply,
    Style,
    count_prompt,
    scores_prompt,
)
from ensue.errors import EnsueError, RunFailed
from ensue.models.request import Part, PartScore, Policy, Prepared, Request, TextPart, TokenPart
from ensue.scoring.tokens import cut_pieces, prepare_cut, prepare_each

T = TypeVar("T")

# Nats within which two log-probabilities of one token are the same but for rounding.
_AGREEMENT = 0.25
# A context of fewer characters is not worth a request of its own to count its tokens.
_LONG_CONTEXT = 400
# Where a context ends, it has other tokens with its continuation than without it: so many are told of, too, and
# they lie within so many characters.
_OVERLAP, _REACH = 4, 400
_UNKNOWN_ROOM = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class NumberedPart(TokenPart):
    """Tokens that were cut by the server's own tokenizer, and the text of which those from `start` on are the
    beginning."""

    text: str = ""


class EndpointModel(ServedModel):
    """Scores and continues text through a server that tokenises it and runs the model."""

    def __init__(self, url: str, model: str | None = None, **options: Any) -> None:
        super().__init__(url, model, **options)
        self._style: Style | None = None
        self._count = Once(self._ask_count)

    def check(self, policy: Policy) -> None:
        """Refuse what needs our own tokenizer; any window will do, since texts are sent whole."""
        if policy.max_length is not None:
            raise EnsueError(
                f"max_length cannot be set for {self._name} at {self._client.root}, because the server "
                "tokenises the text; limit it where the server is started."
            )
        if policy.bos != "auto":
            raise EnsueError(
                f"bos={policy.bos} cannot be asked of {self._name} at {self._client.root}, because the "
                "server tokenises the text; leave it at auto."
            )

    def prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        """Turn each request into one whole text, or into tokens where it is cut; an empty continuation needs no
        asking."""
        self.check(policy)
        for request in requests:
            check_sendable(request.context + request.continuation)
        return prepare_each(requests, lambda whole: [_whole(request) for request in whole], self._prepare_cut)

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        """Yield scores as they come back, in any order.

        After a failure nothing more is sent, but what is under way is waited for and given first.
        """
        todo = [index for index in range(len(parts)) if index not in done]
        if not todo:
            return
        try:
            style = self._found_style()
            yield from self._in_flight(todo, lambda index: self._score(parts[index], style))
        except GaveUp as error:
            kept = "finished scores are kept, run again with --resume"
            raise RunFailed(f"{str(error).rstrip('.')}; {kept}.") from None

    def policy_signature(self, policy: Policy) -> str:
        """Return the server's choices, as far as they are known."""
        return "bos:server first:unscored boundary:joint-span window:server"

    def _prepare_cut(self, requests: Sequence[Request]) -> list[Prepared]:
        if not requests:
            return []
        tokenizer = self._lent_tokenizer()
        limit = self.card.max_length
        room = _UNKNOWN_ROOM if limit is None else limit - (tokenizer.bos is not None)
        pieces = cut_pieces(tokenizer, requests, room, self._name)
        return [
            _with_text(prepare_cut(piece, tokenizer.bos), request)
            for piece, request in zip(pieces, requests, strict=True)
        ]

    def _found_style(self) -> Style:
        self._style = self._style or self._find_style()
        return self._style

    def _find_style(self) -> Style:
        """Return the way in which this server reports the log-probabilities of a prompt, found with a short text."""
        refusals = []
        # SGLang's own path names no model, so it is only for servers of one.
        alone = [entry["id"] for entry in self._listed] in ([], [self._name])
        styles: list[Style] = [*([GENERATE] if alone else []), ECHO, PROMPT_LOGPROBS]
        for style in styles:
            try:
                reply = self._ask(style, PROBES[0])
            except Rejected as error:
                if not style.native:
                    refusals.append(f"it answered {error}")
                continue
            except RunFailed:
                raise
            except EnsueError:
                if not style.native:
                    raise
                continue
            if scores_prompt(reply):
                self._check_places(style)
                return style
        said = f" ({refusals[0]})" if refusals else ""
        raise EnsueError(
            f"{self._client.root} returns no prompt log-probabilities{said}; vLLM and SGLang return them "
            "without any option, llama.cpp's llama-server has none for it: there a model may be asked to name its "
            "choice instead (--set by=generation, for GLUE --mode generate)."
        )

    def _behaviour(self) -> Behaviour | None:
        """Return the tokens of short texts and their log-probabilities, without what the server added; of a server
        that does not tell them, what it goes on with."""
        try:
            style = self._found_style()
            placed = [one for text in PROBES for one in self._placed(style, text)[0]]
        except RunFailed:
            raise
        except EnsueError:
            return super()._behaviour()
        return Behaviour(
            tuple(one.token.text or "" for one in placed), tuple(one.token.logprob for one in placed)
        )

    def _check_places(self, style: Style) -> None:
        """Make sure that tokens are scored at their own place, by scoring one that the server generated.

        llama-cpp-python gives the tokens of a model without BOS the log-probability they would have one
        place later (its issue 1983), which nothing else in a reply shows.
        """
        before = PROBES[0]
        try:
            reply, added = self._client.ask(
                "/completions",
                lambda answer: (ECHO.read(answer), written_text(answer)),
                {"model": self._name, "prompt": before, **SCORING, "logprobs": 1},
            )
        except Rejected:
            return
        token = reply.tokens[-1] if reply else None
        if token is None or not added or token.text != added or token.logprob is None:
            return
        placed, _ = self._placed(style, before + added)
        last = placed[-1]
        if (last.begin, last.token.text) != (len(before), added) or last.token.logprob is None:
            return
        # Servers may penalise or rescale what they generate, so the best token for the place is right too.
        expected = (token.logprob, last.token.best)
        if not any(x is not None and abs(last.token.logprob - x) < _AGREEMENT for x in expected):
            raise EnsueError(
                f"{self._client.root} puts log-probabilities at the wrong tokens (one that it generates with "
                f"{token.logprob:.2f} it scores with {last.token.logprob:.2f}), as llama-cpp-python does for "
                "models without BOS; serve the model with vLLM or SGLang."
            )

    def _score(self, part: Part, style: Style) -> PartScore:
        if isinstance(part, NumberedPart):
            return self._score_numbered(part, style)
        assert isinstance(part, TextPart)
        text, start = part.text, part.start
        if style.native and start >= _LONG_CONTEXT:
            found = self._score_end(style, text, start)
            if found is not None:
                return found
        placed, counted = self._placed(style, text)
        return self._score_placed(placed, counted, text, start, text[:start])

    def _score_end(self, style: Style, text: str, start: int) -> PartScore | None:
        """Score a text of which only the end is told; None where that does not reach back to `start`.

        Its beginning is counted in a request of its own, which also leaves it in the server's cache.
        """
        context = text[:start]
        before = self._count(context)
        if before is None or before <= _OVERLAP:
            return None
        behind = max(start - _REACH, 0)
        rest = text[behind:]
        try:
            placed, counted = self._placed(style, text, first=before - _OVERLAP, along=rest)
        except EnsueError as error:
            if isinstance(error, RunFailed):
                raise
            return None
        if placed[0].end > start - behind:
            return None
        return self._score_placed(placed, counted, rest, start - behind, context)

    def _score_placed(
        self, placed: Sequence[PlacedToken], counted: int | None, text: str, start: int, context: str
    ) -> PartScore:
        if boundary_unsure(placed, start):
            before = self._count(context)
            if counted is not None and before is not None:
                placed = divide(placed, text, start, counted - before)
        return score_placed(placed, text, start, self._client.root)

    def _score_numbered(self, part: NumberedPart, style: Style) -> PartScore:
        ids = part.ids.tolist()

        def read(reply: Reply) -> PartScore:
            return score_numbered(reply, ids, part.start, part.text, self._client.root)

        return self._told(style, ids, read, first=part.start - 1)

    def _placed(
        self, style: Style, text: str, first: int = 0, along: str | None = None
    ) -> tuple[Sequence[PlacedToken], int | None]:
        """Return the tokens the server makes of a text, each in its place, and how many it counts.

        Told from a token `first` on, they are placed in `along`, the end of the text.
        """

        def read(reply: Reply) -> tuple[Sequence[PlacedToken], int | None]:
            within = text if along is None else along
            return place_tokens(reply, within, self._client.root), reply.counted

        return self._told(style, text, read, first)

    def _told(self, style: Style, prompt: Prompt, use: Callable[[Reply], T], first: int = 0) -> T:
        """Return what `use` makes of the server's tokens of a prompt."""

        def read(answer: Any) -> T:
            reply = style.read(answer)
            if reply is None:
                raise CutShort("sent a reply without log-probabilities")
            return use(reply)

        body = style.body(self._name, prompt, first)
        return self._of_text(prompt, lambda: self._client.ask(style.path, read, body, native=style.native))

    def _ask(self, style: Style, text: str) -> Reply | None:
        body = style.body(self._name, text, 0)
        return self._client.ask(style.path, style.read, body, native=style.native)

    def _ask_count(self, context: str) -> int | None:
        """Count the tokens the server makes of a context."""
        return self._complete(context, SCORING, count_prompt)


def open_endpoint(url: str, *, concurrency: int = 8, timeout: float = 60.0) -> ServedModel:
    """Return the model at a URL; one that is talked to (`…/chat/completions`) only writes."""
    kind = ServedModel if parse_address(url).chat else EndpointModel
    return kind(url, concurrency=concurrency, timeout=timeout)


def _whole(request: Request) -> Prepared:
    if not request.continuation:
        return Prepared((), tokens=0, spans=())
    return Prepared((TextPart(request.context + request.continuation, start=len(request.context)),))


def _with_text(prepared: Prepared, request: Request) -> Prepared:
    """Give the tokens the text they were cut from, along which a server's reply is laid to find their spans."""
    parts = [part for part in prepared.parts if isinstance(part, TokenPart)]
    # Where the continuation's own first token is not scored, what is scored is not the beginning of its text.
    text = request.continuation if prepared.tokens == sum(len(one.ids) - one.start for one in parts) else ""
    numbered = tuple(NumberedPart(part.ids, part.start, text) for part in parts)
    return replace(prepared, parts=numbered, spans=None if parts else prepared.spans)
