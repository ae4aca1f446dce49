"""A model behind an OpenAI-compatible server: its name, who answers under it, and the texts it writes."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from ensue.backends.endpoint.client import CompletionsClient, CutShort, GaveUp, Rejected, parse_address
from ensue.backends.endpoint.flight import in_flight
from ensue.backends.endpoint.identity import NOTHING, PROBES, Behaviour, known_behaviour, stated_digest
from ensue.backends.endpoint.styles import Prompt, completion_body, first_choice
from ensue.backends.endpoint.tokenizer import ServerTokenizer, find_tokenizer
from ensue.backends.qg.questioner import few_shot_prompt
from ensue.errors import EnsueError, RunFailed
from ensue.models.card import ModelCard
from ensue.models.protocols import AnswerSpan, Asked, QuestionSearch

T = TypeVar("T")

_TOO_LONG = re.compile(
    r"too (long|large|many tokens)|longer than|exceed|context (length|size|window)|max_model_len|"
    r"maximum (model|input|sequence|prompt|number of tokens)",
    re.IGNORECASE,
)
_LONGEST = 86_400
_SILENT = Behaviour((), ())
_KEPT = "finished work is kept, run again with --resume"


class ServedModel:
    """Continues text through a server that tokenises it and runs the model.

    The URL is `http(s)://host:port`, `…/v1` or `…/v1/completions`, or `…/v1/chat/completions` for one that is talked
    to; a server with several models is told which one by `…/v1#model-name`. The key comes from `api_key`, else from
    ENSUE_API_KEY or OPENAI_API_KEY.
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
        if not 0 < timeout <= _LONGEST:
            raise EnsueError(f"--timeout is more than 0 and at most {_LONGEST:,} seconds, not {timeout}.")
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
        self._chat = address.chat
        self._watch = threading.Lock()
        self._losses = 0
        self._known: Behaviour | None = None
        self._name = model or address.model or self._only_model()

    def close(self) -> None:
        """Close the connections to the server."""
        self._client.close()

    @cached_property
    def card(self) -> ModelCard:
        """Who answers; asked of the server when first wanted, and the same from then on."""
        root = self._client.root
        entry = next((one for one in self._listed if one["id"] == self._name), None)
        identity = {
            "endpoint": root,
            "model": self._name,
            "stated": NOTHING if entry is None else stated_digest(entry),
            "behaviour": self._behaves(),
        }
        if self._chat:
            identity["talk"] = "chat"
        most = _longest(entry or {})
        # One token of it is the generated one.
        room = most - 1 if isinstance(most, int) and most > 1 else None
        return ModelCard(name=self._name, kind="endpoint", source=root, identity=identity, max_length=room)

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int = 64, stop: Sequence[str] = (), **options: Any
    ) -> list[str]:
        """Return continuations of the prompts, in their order; `options` go to the server as they are."""
        texts: dict[int, str] = {}
        for batch in self.generate_each(prompts, max_tokens=max_tokens, stop=stop, **options):
            texts.update(batch)
        return [texts[index] for index in range(len(prompts))]

    def generate_each(
        self, prompts: Sequence[str], *, max_tokens: int = 64, stop: Sequence[str] = (), **options: Any
    ) -> Iterator[list[tuple[int, str]]]:
        """Yield continuations as they come back, in any order.

        After a failure nothing more is sent, but what is under way is waited for and given first.
        """
        asked = (
            {"max_tokens": max_tokens, "temperature": 0} | ({"stop": list(stop)} if stop else {}) | options
        )
        for prompt in prompts:
            check_sendable(prompt)
        yield from self._kept(range(len(prompts)), lambda at: self._written(prompts[at], asked, written_text))

    def _kept(self, todo: Sequence[int], work: Callable[[int], T]) -> Iterator[list[tuple[int, T]]]:
        """Yield results as they come; say of a server that is given up that what is finished is kept."""
        try:
            yield from self._in_flight(todo, work)
        except GaveUp as error:
            raise RunFailed(f"{str(error).rstrip('.')}; {_KEPT}.") from None

    def ask(self, contexts: Sequence[str], answers: Sequence[AnswerSpan], **search: Any) -> list[list[Asked]]:
        """Ask by instruction about the marked answers, one question each."""
        prompts = question_prompts(contexts, answers)
        options = question_options(search, chat=self._chat)
        for prompt in prompts:
            check_sendable(prompt)

        def read(reply: Any) -> list[Asked]:
            return read_question(reply, written_text(reply))

        found: dict[int, list[Asked]] = {}
        for batch in self._kept(range(len(prompts)), lambda at: self._written(prompts[at], options, read)):
            found.update(batch)
        return [found[place] for place in range(len(prompts))]

    def cut_texts(self, texts: Sequence[str], tokens: int, *, last: bool = False) -> list[str]:
        """Return the first so many tokens of each text, or the last ones, by the server's own tokenizer."""
        for text in texts:
            check_sendable(text)
        tokenizer = self._lent_tokenizer()
        ids = tokenizer(texts)["input_ids"]
        return tokenizer.decode([one[-tokens:] if last else one[:tokens] for one in ids])

    def _lent_tokenizer(self) -> ServerTokenizer:
        """Return the tokenizer that the server lends, or refuse."""
        if self._tokenizer is None:
            raise EnsueError(
                f"{self._name} at {self._client.root} tokenises text itself and lends no tokenizer (/tokenize), so "
                "prefixes and suffixes cannot be cut in tokens for it; serve it with SGLang or vLLM, or run the "
                "model here from its weights."
            )
        return self._tokenizer

    @cached_property
    def _tokenizer(self) -> ServerTokenizer | None:
        return find_tokenizer(self._client, self._name, self._concurrency)

    def _written(self, prompt: str, options: dict[str, Any], read: Callable[[Any], T]) -> T:
        """Return what `read` makes of the server's continuation of a prompt, or of its reply to it."""
        if self._chat:
            talk = {"model": self._name, "messages": [{"role": "user", "content": prompt}], **options}
            return self._of_text(prompt, lambda: self._client.ask("/chat/completions", read, talk))
        return self._complete(prompt, options, read)

    def _complete(self, prompt: Prompt, options: dict[str, Any], read: Callable[[Any], T]) -> T:
        """Return what `read` makes of the completion of a prompt."""
        body = completion_body(self._name, prompt, **options)
        return self._of_text(prompt, lambda: self._client.ask("/completions", read, body))

    def _of_text(self, prompt: Prompt, ask: Callable[[], T]) -> T:
        """Return what is asked about a prompt; a refusal becomes one sentence about that text."""
        try:
            return ask()
        except Rejected as error:
            root, which = self._client.root, _words_for(prompt)
            if error.status in (400, 413, 422) and _TOO_LONG.search(error.words):
                raise EnsueError(f"{root} finds {which} too long: {error.words}.") from None
            raise EnsueError(f"{root} refused {which} with {error}.") from None

    def _in_flight(self, todo: Sequence[int], work: Callable[[int], T]) -> Iterator[list[tuple[int, T]]]:
        def believed(index: int) -> T:
            found = work(index)
            self._check_still_there()
            return found

        return in_flight(todo, believed, self._concurrency, self._client.halt)

    def _check_still_there(self) -> None:
        """Refuse replies of another model, which may have been started where the first one was gone meanwhile."""
        if self._losses == self._client.losses:
            return
        with self._watch:
            losses = self._client.losses
            if self._losses == losses:
                return
            if self._known is not None and not self._known.is_like(self._behaviour() or _SILENT):
                raise RunFailed(
                    f"Another model answers at {self._client.root} than when the run began: it gives short texts "
                    "other log-probabilities; finished work is kept: serve the first one again, then run again "
                    "with --resume."
                )
            self._losses = losses

    @cached_property
    def _listed(self) -> list[dict[str, Any]]:
        """What the server lists, an entry for each model; not every server lists anything."""
        try:
            return self._client.ask("/models", _entries)
        except RunFailed:
            raise
        except (Rejected, EnsueError):
            return []

    def _only_model(self) -> str:
        """Return the name of the one model served."""
        root = self._client.root
        try:
            self._listed = self._client.ask("/models", _entries)
        except Rejected as error:
            raise EnsueError(
                f"{root}/models answered {error}; name the model as {root}#model-name."
            ) from None
        names = [str(entry["id"]) for entry in self._listed]
        if len(names) == 1:
            return names[0]
        if not names:
            raise EnsueError(f"{root} lists no models; name the one to use as {root}#model-name.")
        raise EnsueError(
            f"{root} serves {len(names)} models ({', '.join(names)}); choose one, as in {root}#{names[0]}."
        )

    def _behaves(self) -> str:
        """Name how the model behaves; unknown where a server reports no log-probabilities at all."""
        self._losses = self._client.losses
        found = self._behaviour()
        if found is None:
            return NOTHING
        if found.is_like(found):
            self._known = found
        return known_behaviour(self._client.root, self._name, found)

    def _behaviour(self) -> Behaviour | None:
        """Return the tokens with which the model goes on after short texts, and their log-probabilities."""
        tokens: list[str] = []
        logprobs: list[float | None] = []
        asked = {"max_tokens": 1, "temperature": 0}
        asked |= {"logprobs": True} if self._chat else {"logprobs": 1}
        for text in PROBES:
            try:
                token, logprob = self._written(text, asked, _first_token)
            except RunFailed:
                raise
            except EnsueError:
                return None
            if token is None or logprob is None:
                return None
            tokens.append(token)
            logprobs.append(logprob)
        return Behaviour(tuple(tokens), tuple(logprobs))


def check_sendable(text: str) -> None:
    """Refuse a text that JSON in UTF-8 cannot carry."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise EnsueError(
            f"The text that begins {text[:40]!r} holds half a character (a lone surrogate), which "
            "cannot be sent to a server."
        )


def _words_for(prompt: Prompt) -> str:
    if isinstance(prompt, str):
        return f"the text of {len(prompt)} characters that begins {prompt[:40]!r}"
    return f"a text of {len(prompt)} tokens"


def _longest(entry: Mapping[str, Any]) -> Any:
    """Return how many tokens a server says it takes: vLLM and SGLang in one place, llama.cpp in another."""
    meta = entry.get("meta")
    return entry.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)


def written_text(reply: Any) -> str:
    """Return what was written: the completion's text, or what a message says."""
    choice = first_choice(reply)
    message = choice.get("message")
    if not isinstance(message, dict) and "text" not in choice:
        raise CutShort("sent a completion without a text")
    said = message.get("content") if isinstance(message, dict) else choice["text"]
    if isinstance(said, list):  # parts, of which some may be no text
        said = "".join(str(part.get("text") or "") for part in said if isinstance(part, dict))
    return str(said or "")


def _first_token(reply: Any) -> tuple[str | None, float | None]:
    """Return the first generated token and its log-probability, None where they are not told."""
    told = first_choice(reply).get("logprobs")
    if not isinstance(told, dict):
        return None, None
    try:
        if told.get("content"):
            one = told["content"][0]
            return str(one["token"]), float(one["logprob"])
        return str(told["tokens"][0]), float(told["token_logprobs"][0])
    except (KeyError, IndexError, TypeError, ValueError):
        return None, None


def _entries(reply: Any) -> list[dict[str, Any]]:
    """Return what a server lists, an entry for each model."""
    listed = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(listed, list):
        raise CutShort("sent no list of models")
    return [entry for entry in listed if isinstance(entry, dict) and "id" in entry]


def question_prompts(contexts: Sequence[str], answers: Sequence[AnswerSpan]) -> list[str]:
    """Return what a model is asked: to write a question that the marked part of each text answers."""
    return ["".join(few_shot_prompt(*pair)) for pair in zip(contexts, answers, strict=True)]


def question_options(search: dict[str, Any], *, chat: bool) -> dict[str, Any]:
    """Return what is asked of the server for each question.

    It searches as it will, so what is asked of a search but its length is left out: the question is the likeliest one
    token by token.
    """
    most = QuestionSearch(**search).max_tokens
    return {"max_tokens": most, "temperature": 0, "stop": ["\n"], "logprobs": True if chat else 1}


def read_question(reply: Any, text: str) -> list[Asked]:
    """Return the question that was written, with its mean log-probability a token (0 where that is not told)."""
    question = next((line.strip() for line in text.splitlines() if line.strip()), "")
    told = first_choice(reply).get("logprobs")
    told = told if isinstance(told, dict) else {}
    content = told.get("content")
    values = [one.get("logprob") for one in content if isinstance(one, dict)] if content else None
    known = [
        float(value)
        for value in (values if values is not None else told.get("token_logprobs") or [])
        if isinstance(value, int | float) and math.isfinite(value)
    ]
    return [Asked(question, math.fsum(known) / len(known) if known else 0.0)] if question else []
