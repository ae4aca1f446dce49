"""The tokenizer of a server that lends it: `/tokenize` as vLLM and SGLang have it, or as llama.cpp has.

It is used where texts are cut in tokens (ChapterBreak). What is cut is sent as tokens, or, where a server takes text
alone, as the text that `/detokenize` makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ensue.backends.endpoint.client import CompletionsClient, CutShort, Rejected
from ensue.backends.endpoint.flight import in_flight
from ensue.errors import EnsueError, RunFailed

_PROBE = "The sun rose over the hill."


class _Dialect(NamedTuple):
    """How a server calls what it is sent and what it gives back; `special` asks for a BOS where the model has one."""

    text: str
    special: str
    named: bool
    content: str


_DIALECTS = (
    _Dialect("prompt", "add_special_tokens", True, "prompt"),
    _Dialect("content", "add_special", False, "content"),
)


@dataclass(frozen=True)
class ServerTokenizer:
    """Tokenises texts by asking their server, as one of transformers would that knows no spans."""

    client: CompletionsClient
    model: str
    concurrency: int
    dialect: _Dialect
    bos: int | None
    is_fast = False

    def __call__(self, texts: Sequence[str], **_: Any) -> dict[str, list[list[int]]]:
        """Return the tokens of texts, without a BOS."""
        return {
            "input_ids": self._each(texts, lambda text: _encode(self.client, self.model, self.dialect, text))
        }

    def decode(self, tokens: Iterable[Sequence[int]]) -> list[str]:
        """Return the texts that tokens stand for."""
        dialect = self.dialect

        def one(ids: Sequence[int]) -> str:
            body = _body(dialect, self.model, {"tokens": list(ids)})
            return self.client.ask("/detokenize", lambda reply: _text(reply, dialect), body, native=True)

        return self._each(list(tokens), one)

    def _each(self, things: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
        found: dict[int, Any] = {}
        places = range(len(things))
        try:
            for batch in in_flight(places, lambda at: work(things[at]), self.concurrency, self.client.halt):
                found.update(batch)
        except Rejected as error:
            raise EnsueError(
                f"{self.client.root} refused to tokenise for {self.model} with {error}; see the server's log."
            ) from None
        return [found[place] for place in places]


def find_tokenizer(client: CompletionsClient, model: str, concurrency: int) -> ServerTokenizer | None:
    """Return the tokenizer a server lends; None where it lends none."""
    for dialect in _DIALECTS:
        try:
            bare = _encode(client, model, dialect, _PROBE, read=_probed)
            whole = _encode(client, model, dialect, _PROBE, special=True, read=_probed)
        except RunFailed:
            raise
        except (Rejected, EnsueError):
            continue
        if bare and whole[-len(bare) :] == bare and len(whole) - len(bare) <= 1:
            bos = whole[0] if len(whole) > len(bare) else None
            return ServerTokenizer(client, model, concurrency, dialect, bos)
    return None


def _body(dialect: _Dialect, model: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"model": model, **facts} if dialect.named else dict(facts)


def _encode(
    client: CompletionsClient,
    model: str,
    dialect: _Dialect,
    text: str,
    *,
    special: bool = False,
    read: Callable[[Any], list[int]] | None = None,
) -> list[int]:
    body = _body(dialect, model, {dialect.text: text, dialect.special: special})
    return client.ask("/tokenize", read or _numbers, body, native=True)


def _probed(reply: Any) -> list[int]:
    """Return the tokens in a reply, none where it is that of another server's `/tokenize`."""
    try:
        return _numbers(reply)
    except CutShort:
        return []


def _numbers(reply: Any) -> list[int]:
    tokens = reply.get("tokens") if isinstance(reply, dict) else None
    if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
        raise CutShort("sent no tokens")
    return tokens


def _text(reply: Any, dialect: _Dialect) -> str:
    names: Iterator[str] = iter((dialect.content, "text", "prompt", "content"))
    text = next((reply[name] for name in names if isinstance(reply, dict) and name in reply), None)
    if not isinstance(text, str):
        raise CutShort("sent no text")
    return text
