"""A model behind an OpenAI-compatible completions server (vLLM, SGLang, llama-cpp-python, …)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from ensue.backends.endpoint.client import CompletionsClient, CutShort, GaveUp, Rejected, parse_address
from ensue.backends.endpoint.identity import NOTHING, Behaviour, known_behaviour, stated_digest
from ensue.backends.endpoint.reply import (
    ECHO,
    PROMPT_LOGPROBS,
    PlacedToken,
    Style,
    boundary_unsure,
    count_prompt,
    divide,
    first_choice,
    place_tokens,
    score_placed,
    scores_prompt,
)
from ensue.errors import EnsueError, RunFailed
from ensue.models.card import ModelCard
from ensue.models.request import Part, PartScore, Policy, Prepared, Request, TextPart

T = TypeVar("T")

# Some servers refuse to generate nothing, so one token is asked for and dropped.
_SCORING = {"max_tokens": 1, "temperature": 0}
_PROBE = "The sun rose over the hill, and the birds began to sing."
# Nats within which two log-probabilities of one token are the same but for rounding.
_AGREEMENT = 0.25
_TOO_LONG = re.compile(
    r"too (long|large|many tokens)|longer than|exceed|context (length|size|window)|max_model_len|"
    r"maximum (model|input|sequence|prompt|number of tokens)",
    re.IGNORECASE,
)


class EndpointModel:
    """Scores and continues text through a server that tokenises it and runs the model.

    The URL is `http(s)://host:port`, `…/v1` or `…/v1/completions`; a server with several models is told
    which one by `…/v1#model-name`. The key comes from `api_key`, else from ENSUE_API_KEY or OPENAI_API_KEY.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        api_key: str | None = None,
        concurrency: int = 8,
        timeout: float = 60.0,
        retries: int = 5,
        backoff: float = 0.5,
    ) -> None:
        if concurrency < 1:
            raise EnsueError(f"--concurrency must be at least 1, not {concurrency}.")
        address = parse_address(url)
        self._client = CompletionsClient(
            address,
            api_key=api_key,
            connections=concurrency,
            timeout=timeout,
            retries=retries,
            backoff=backoff,
        )
        self._concurrency = concurrency
        self._style: Style | None = None
        self._counts: dict[str, int | None] = {}
        self._behaviour: Behaviour | None = None
        self._name = model or address.model or self._only_model()

    @cached_property
    def card(self) -> ModelCard:
        """Who answers; asked of the server when first wanted, and the same from then on."""
        root = self._client.root
        identity = {
            "endpoint": root,
            "model": self._name,
            "stated": self._stated(),
            "behaviour": self._behaves(),
        }
        return ModelCard(name=self._name, kind="endpoint", source=root, identity=identity)

    def _stated(self) -> str:
        """Return what the server lists about the model; not every server lists anything."""
        try:
            listed = self._client.ask("/models", _listed)
        except RunFailed:
            raise
        except (Rejected, EnsueError):
            return NOTHING
        return next((stated_digest(entry) for entry in listed if entry["id"] == self._name), NOTHING)

    def _behaves(self) -> str:
        """Return how the model behaves; unknown where a server reports no log-probabilities of a prompt."""
        try:
            self._style = self._style or self._find_style()
        except RunFailed:
            raise
        except EnsueError:
            return NOTHING
        if self._behaviour is None:
            return NOTHING
        return known_behaviour(self._client.root, self._name, self._behaviour)

    def close(self) -> None:
        """Close the connections to the server."""
        self._client.close()

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
        """Turn each request into one whole text; an empty continuation needs no asking."""
        self.check(policy)
        return [self._prepare(request) for request in requests]

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        """Yield scores as they come back, in any order.

        After a failure nothing more is sent, but what is under way is waited for and given first.
        """
        todo = [index for index in range(len(parts)) if index not in done]
        if not todo:
            return
        try:
            style = self._style = self._style or self._find_style()
            yield from self._in_flight(todo, lambda index: self._score(parts[index], style))
        except GaveUp as error:
            kept = "finished scores are kept, run again with --resume"
            raise RunFailed(f"{str(error).rstrip('.')}; {kept}.") from None

    def policy_signature(self, policy: Policy) -> str:
        """Return the server's choices, as far as they are known."""
        return "bos:server first:unscored boundary:joint-span window:server"

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int = 64, stop: Sequence[str] = (), **options: Any
    ) -> list[str]:
        """Return continuations of the prompts, in their order; `options` go to the server as they are."""
        body = {"max_tokens": max_tokens, "temperature": 0} | ({"stop": list(stop)} if stop else {}) | options
        texts: dict[int, str] = {}
        for batch in self._in_flight(
            range(len(prompts)), lambda index: self._complete(prompts[index], body, _generated)
        ):
            texts.update(batch)
        return [texts[index] for index in range(len(prompts))]

    def _prepare(self, request: Request) -> Prepared:
        text = request.context + request.continuation
        if request.cut is not None:
            raise EnsueError(
                f"{self._name} at {self._client.root} tokenises text itself, so prefixes and suffixes cannot "
                "be cut in tokens for it; run the model here from its weights."
            )
        if not request.continuation:
            return Prepared((), tokens=0, spans=())
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise EnsueError(
                f"The text that begins {text[:40]!r} holds half a character (a lone surrogate), which "
                "cannot be sent to a server."
            )
        return Prepared((TextPart(text, start=len(request.context)),))

    def _only_model(self) -> str:
        """Return the name of the one model served."""
        root = self._client.root
        try:
            names = [str(entry["id"]) for entry in self._client.ask("/models", _listed)]
        except Rejected as error:
            raise EnsueError(
                f"{root}/models answered {error}; name the model as {root}#model-name."
            ) from None
        if len(names) == 1:
            return names[0]
        if not names:
            raise EnsueError(f"{root} lists no models; name the one to use as {root}#model-name.")
        raise EnsueError(
            f"{root} serves {len(names)} models ({', '.join(names)}); choose one, as in {root}#{names[0]}."
        )

    def _find_style(self) -> Style:
        """Return the way in which this server reports the log-probabilities of a prompt, found with a short text."""
        refusals = []
        for style in (ECHO, PROMPT_LOGPROBS):
            try:
                reply = self._ask(_PROBE, _SCORING | style.options, style.read)
            except Rejected as error:
                refusals.append(f"it answered {error}")
                continue
            if scores_prompt(reply):
                self._check_places(style)
                self._behaviour = self._behaviour_in(reply)
                return style
        said = f" ({refusals[0]})" if refusals else ""
        raise EnsueError(
            f"{self._client.root} returns no prompt log-probabilities{said}; vLLM and SGLang return them "
            "without any option, llama.cpp's llama-server has none for it."
        )

    def _behaviour_in(self, reply: Any) -> Behaviour | None:
        """Return the tokens of the short text and their log-probabilities, without what the server added."""
        try:
            placed = place_tokens(reply, _PROBE, self._client.root)
        except (EnsueError, CutShort):
            return None
        return Behaviour(
            tuple(one.token.text or "" for one in placed), tuple(one.token.logprob for one in placed)
        )

    def _check_places(self, style: Style) -> None:
        """Make sure that tokens are scored at their own place, by scoring one that the server generated.

        llama-cpp-python gives the tokens of a model without BOS the log-probability they would have one
        place later (its issue 1983), which nothing else in a reply shows.
        """
        try:
            reply, added = self._ask(
                _PROBE, _SCORING | {"logprobs": 1}, lambda answer: (ECHO.read(answer), _generated(answer))
            )
        except Rejected:
            return
        token = reply.tokens[-1] if reply else None
        if token is None or not added or token.text != added or token.logprob is None:
            return
        text = _PROBE + added
        placed, _ = self._placed(style, text)
        last = placed[-1]
        if (last.begin, last.token.text) != (len(_PROBE), added) or last.token.logprob is None:
            return
        # Servers may penalise or rescale what they generate, so the best token for the place is right too.
        expected = (token.logprob, last.token.best)
        if not any(x is not None and abs(last.token.logprob - x) < _AGREEMENT for x in expected):
            raise EnsueError(
                f"{self._client.root} puts log-probabilities at the wrong tokens (one that it generates with "
                f"{token.logprob:.2f} it scores with {last.token.logprob:.2f}), as llama-cpp-python does for "
                "models without BOS; serve the model with vLLM or SGLang."
            )

    def _placed(self, style: Style, text: str) -> tuple[Sequence[PlacedToken], int | None]:
        """Return the tokens the server makes of a text, each in its place, and how many it counts."""

        def read(answer: Any) -> tuple[Sequence[PlacedToken], int | None]:
            reply = style.read(answer)
            if reply is None:
                raise CutShort("sent a reply without log-probabilities")
            return place_tokens(reply, text, self._client.root), reply.counted

        return self._complete(text, _SCORING | style.options, read)

    def _score(self, part: Part, style: Style) -> PartScore:
        assert isinstance(part, TextPart)
        text, start = part.text, part.start
        placed, counted = self._placed(style, text)
        if boundary_unsure(placed, start):
            before = self._count(text[:start])
            if counted is not None and before is not None:
                placed = divide(placed, text, start, counted - before)
        return score_placed(placed, text, start, self._client.root)

    def _count(self, context: str) -> int | None:
        """Count the tokens the server makes of a context; asked once for each."""
        if context not in self._counts:
            self._counts[context] = self._complete(context, _SCORING, count_prompt)
        return self._counts[context]

    def _complete(self, text: str, options: dict[str, Any], read: Callable[[Any], T]) -> T:
        """Return what `read` makes of the completion of a text; a refusal becomes one sentence about that text."""
        try:
            return self._ask(text, options, read)
        except Rejected as error:
            root, which = self._client.root, f"the text of {len(text)} characters that begins {text[:40]!r}"
            if error.status in (400, 413, 422) and _TOO_LONG.search(error.words):
                raise EnsueError(f"{root} finds {which} too long: {error.words}.") from None
            raise EnsueError(f"{root} refused {which} with {error}.") from None

    def _ask(self, text: str, options: dict[str, Any], read: Callable[[Any], T]) -> T:
        return self._client.ask("/completions", read, {"model": self._name, "prompt": text, **options})

    def _in_flight(self, todo: Sequence[int], work: Callable[[int], T]) -> Iterator[list[tuple[int, T]]]:
        """Yield results of `work` as they come, with `concurrency` of them under way at a time."""
        waiting = iter(todo)
        failure: BaseException | None = None
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="ensue-endpoint")
        try:
            flying: dict[Future[T], int] = {}
            while True:
                if failure is None:
                    for index in islice(waiting, self._concurrency - len(flying)):
                        flying[pool.submit(work, index)] = index
                if not flying:
                    break
                landed = [(flying.pop(future), future) for future in wait(flying, None, FIRST_COMPLETED).done]
                failure = failure or next((error for _, f in landed if (error := f.exception())), None)
                if batch := [(index, f.result()) for index, f in landed if f.exception() is None]:
                    yield batch
        finally:
            # Only where the caller stops early is anything still under way; it is not tried again.
            self._client.halt.set()
            pool.shutdown(cancel_futures=True)
            self._client.halt.clear()
        if failure is not None:
            raise failure


def _generated(reply: Any) -> str:
    return str(first_choice(reply).get("text") or "")


def _listed(reply: Any) -> list[dict[str, Any]]:
    """Return what a server lists, an entry for each model."""
    listed = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(listed, list):
        raise CutShort("sent no list of models")
    return [entry for entry in listed if isinstance(entry, dict) and "id" in entry]
