"""From text to token parts: BOS, the boundary between context and continuation, and windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.errors import EnsueError
from ensue.models.request import Mix, Policy, Prepared, Request, TokenPart, Window
from ensue.scoring.prefixes import common_prefix
from ensue.scoring.repeated import tokenise_repeated


def specials_around(tokenizer: Any, model: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what stands before and after a text's own tokens."""
    whole = list(tokenizer("a")["input_ids"])
    bare = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    for offset in range(len(whole) - len(bare) + 1):
        if whole[offset : offset + len(bare)] == bare:
            return tuple(whole[:offset]), tuple(whole[offset + len(bare) :])
    raise EnsueError(f"The tokenizer of {model} changes a text when it adds special tokens.")


class Released(NamedTuple):
    """The constants of the authors' released code, which differ between its two scripts.

    `longest` is the longest window; None where it is as long as the model takes.
    """

    stride: int
    by_advance: bool
    longest: int | None = None


RELEASED_CAUSAL = Released(stride=512, by_advance=True)
RELEASED_MASKED = Released(stride=256, by_advance=False, longest=512)


class Cut(NamedTuple):
    """Tokens `[begin, end)` of a text, of which those from `scored_from` on are scored."""

    begin: int
    end: int
    scored_from: int


def cut_windows(length: int, size: int, policy: Window, released: Released) -> tuple[list[Cut], Mix]:
    """Return windows of at most `size` tokens over a text of `length` tokens, and how their scores mix.

    Positions count the text's own tokens; a scorer that puts a BOS first passes a smaller size. Whether a
    window's first token can be scored is the scorer's BOS policy, not the window's.
    """
    if policy == "released":
        return _released(length, size, released)
    if length <= size:
        return [Cut(0, length, 0)], Mix("sum")
    if policy == "average":
        return _average(length, size), Mix("average")
    return _strided(length, size), Mix("sum")


def _average(length: int, size: int) -> list[Cut]:
    """Return half-overlapping windows, each scored whole; the last one ends with the text."""
    stride = max(size // 2, 1)
    starts = [*range(0, length - size, stride), length - size]
    return [Cut(start, start + size, start) for start in starts]


def _strided(length: int, size: int) -> list[Cut]:
    """Return windows that each score only what the last one did not reach; every token is scored once."""
    stride = max(size // 2, 1)
    cuts = [Cut(0, size, 0)]
    while (reached := cuts[-1].end) < length:
        end = min(reached + stride, length)
        cuts.append(Cut(end - size, end, reached))
    return cuts


def _released(length: int, size: int, released: Released) -> tuple[list[Cut], Mix]:
    """Return windows that end at each multiple of the stride; each one's mean counts over all of its tokens,
    weighted by the tokens it advances (causal script) or equally (masked script)."""
    size = size if released.longest is None else min(size, released.longest)
    stride = min(released.stride, size)
    ends = [min(start + stride, length) for start in range(0, length, stride)]
    cuts = [Cut(max(i * stride + stride - size, 0), end, 0) for i, end in enumerate(ends)]
    cuts = [cut._replace(scored_from=cut.begin) for cut in cuts]
    if released.by_advance:
        shares = tuple((end - i * stride) / length for i, end in enumerate(ends))
    else:
        shares = (1 / len(ends),) * len(ends)
    return cuts, Mix("means", shares)


Ids = npt.NDArray[np.int32]
Spans = list[tuple[int, int]]

# Texts are given to the tokenizer in slices of this many, which keeps its own copies small.
_SLICE = 512


def tokenise(tokenizer: Any, texts: Sequence[str]) -> list[Ids]:
    """Tokenise each text, without special tokens; what several texts repeat is tokenised once."""

    def encode(some: Sequence[str]) -> list[Ids]:
        return [np.asarray(ids, dtype=np.int32) for ids in _encoded(tokenizer, some, spans=False)]

    found = tokenise_repeated(tokenizer, texts, encode)
    return encode(texts) if found is None else found


def tokenise_with_spans(tokenizer: Any, texts: Sequence[str]) -> list[tuple[Ids, Spans]]:
    """Tokenise each text; where the tokenizer knows them, return the characters each token covers too."""
    if not tokenizer.is_fast:
        return [(ids, []) for ids in tokenise(tokenizer, texts)]
    return [(np.asarray(ids, dtype=np.int32), spans) for ids, spans in _encoded(tokenizer, texts, spans=True)]


def tokenise_requests(tokenizer: Any, requests: Sequence[Request]) -> list[tuple[Ids, Spans]]:
    """Tokenise each request's two texts jointly, with spans (which cost time) where detail is asked for."""
    texts = [request.context + request.continuation for request in requests]
    found = _tokenised(tokenizer, texts, [request.detail for request in requests])
    return [found[text] for text in texts]


def _tokenised(tokenizer: Any, texts: Sequence[str], detail: Sequence[bool]) -> dict[str, tuple[Ids, Spans]]:
    """Tokenise each distinct text once, with its spans where detail is asked for."""
    pairs = list(zip(texts, detail, strict=True))
    detailed = dict.fromkeys(text for text, wanted in pairs if wanted)
    plain = dict.fromkeys(text for text, _ in pairs if text not in detailed)
    found = dict(zip(detailed, tokenise_with_spans(tokenizer, list(detailed)), strict=True))
    return found | {
        text: (ids, []) for text, ids in zip(plain, tokenise(tokenizer, list(plain)), strict=True)
    }


def _encoded(tokenizer: Any, texts: Sequence[str], *, spans: bool) -> Iterator[Any]:
    for begin in range(0, len(texts), _SLICE):
        encoded = tokenizer(
            list(texts[begin : begin + _SLICE]),
            add_special_tokens=False,
            return_offsets_mapping=spans,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        ids = encoded["input_ids"]
        yield from zip(ids, encoded["offset_mapping"], strict=True) if spans else ids


class Pieces(NamedTuple):
    """What a cut leaves of a request: tokens of its context and of its continuation, and the latter's spans."""

    context: Ids
    continuation: Ids
    spans: Spans


def cut_pieces(tokenizer: Any, requests: Sequence[Request], room: int, model: str) -> list[Pieces]:
    """Tokenise context and continuation of requests with a cut apart, each distinct text once."""
    contexts = list(dict.fromkeys(request.context for request in requests))
    context_ids = dict(zip(contexts, tokenise(tokenizer, contexts), strict=True))
    found = _tokenised(tokenizer, [r.continuation for r in requests], [r.detail for r in requests])
    pieces = []
    for request in requests:
        assert request.cut is not None  # the caller chose the requests that have one
        last, first = request.cut
        before, (after, spans) = context_ids[request.context], found[request.continuation]
        piece = Pieces(before[max(len(before) - last, 0) :], after[:first], spans[:first])
        if len(piece.context) + len(piece.continuation) > room:
            raise EnsueError(
                f"{len(piece.context)} tokens of context and {len(piece.continuation)} of continuation do not "
                f"fit the {room} tokens {model} takes (the context ends {request.context[-40:]!r}); cut them "
                f"shorter."
            )
        pieces.append(piece)
    return pieces


def prepare_each(
    requests: Sequence[Request],
    whole: Callable[[list[Request]], list[Prepared]],
    cut: Callable[[list[Request]], list[Prepared]],
) -> list[Prepared]:
    """Prepare the requests with a cut in one way, the others in another, and keep their order."""
    ready = {
        kind: iter(prepare([request for request in requests if (request.cut is not None) == kind]))
        for kind, prepare in ((True, cut), (False, whole))
    }
    return [next(ready[request.cut is not None]) for request in requests]


def own_bos(tokenizer: Any) -> int | None:
    """Return the BOS id, if the tokenizer itself puts one first; None if it does not."""
    bos = tokenizer.bos_token_id
    if bos is None:
        return None
    ids = tokenizer("a")["input_ids"]
    return int(bos) if ids and ids[0] == bos else None


class _Limits(NamedTuple):
    """What texts are laid out by: the policy, the BOS, how many tokens of text fit, and the model's name."""

    policy: Policy
    bos: int | None
    room: int
    model: str


def prepare_causal(
    requests: Sequence[Request],
    policy: Policy,
    *,
    tokenizer: Any,
    bos: int | None,
    max_length: int,
    model: str,
) -> list[Prepared]:
    """Turn requests into token parts for a left-to-right model, in windows or cut as they ask.

    With a BOS every window starts with it; without one the first token of a window only conditions the rest.
    """
    room = max_length - (bos is not None)
    if room < 2:
        raise EnsueError(f"max_length {max_length} leaves {model} no room to score anything.")
    limits = _Limits(policy, bos, room, model)
    return prepare_each(
        requests,
        lambda whole: _prepare_whole(whole, tokenizer, limits),
        lambda cut: [prepare_cut(piece, bos) for piece in cut_pieces(tokenizer, cut, room, model)],
    )


def prepare_cut(piece: Pieces, bos: int | None) -> Prepared:
    """Join what a cut leaves to one sequence, in which the continuation is scored."""
    before = np.asarray([] if bos is None else [bos], dtype=np.int32)
    # Where nothing stands before the continuation, its first token conditions the rest.
    start = max(len(before) + len(piece.context), 1)
    unscored = start - len(before) - len(piece.context)
    tokens = max(len(piece.continuation) - unscored, 0)
    used = len(piece.context)
    if not tokens:
        return Prepared((), tokens=0, spans=(), notes=Counter({"nothing to score": 1}), context_tokens=used)
    part = TokenPart(np.concatenate([before, piece.context, piece.continuation]), start)
    spans = tuple(piece.spans[unscored:]) if piece.spans else None
    return Prepared((part,), tokens=tokens, spans=spans, context_tokens=used)


def _prepare_whole(requests: Sequence[Request], tokenizer: Any, limits: _Limits) -> list[Prepared]:
    """Prepare requests without a cut.

    Context and continuation are tokenised jointly; the continuation begins where the joint tokens leave the
    context's own, so a token that spans the join belongs to it.
    """
    joint = tokenise_requests(tokenizer, requests)
    contexts = sorted({request.context for request in requests if request.context})
    context_ids = dict(zip(contexts, tokenise(tokenizer, contexts), strict=True))
    prepared = []
    for request, (ids, spans) in zip(requests, joint, strict=True):
        notes: Counter[str] = Counter()
        begin = 0
        if request.context:
            begin = common_prefix(context_ids[request.context], ids)
            notes["boundary token"] += begin < len(context_ids[request.context])
        ids, spans, begin = _fit_context(request, ids, spans, begin, limits, notes)
        prepared.append(_windows(ids, spans, begin, len(request.context), limits, notes))
    return prepared


def _fit_context(
    request: Request, ids: Ids, spans: Spans, begin: int, limits: _Limits, notes: Counter[str]
) -> tuple[Ids, Spans, int]:
    """Shorten a context that does not fit before its continuation, from the left, where the policy allows."""
    excess = len(ids) - limits.room
    if excess <= 0 or begin == 0:
        return ids, spans, begin
    if limits.policy.overflow == "refuse":
        raise EnsueError(
            f"A context of {begin} tokens and its continuation of {len(ids) - begin} do not fit the {limits.room} "
            f"tokens {limits.model} takes (context begins {request.context[:40]!r}); shorten it or allow "
            f"truncation with --set overflow=truncate."
        )
    # One token of context stays, so that the continuation's first token is conditioned on something.
    drop = min(excess, begin - 1)
    if drop:
        notes["context truncated"] += 1
        notes["context tokens dropped"] += drop
    return ids[drop:], spans[drop:], begin - drop


def _windows(
    ids: Ids, spans: Spans, begin: int, context_chars: int, limits: _Limits, notes: Counter[str]
) -> Prepared:
    """Cut the tokens into windows and put the BOS first in each."""
    policy, bos, room, model = limits
    if len(ids) > room and policy.window == "refuse":
        raise EnsueError(
            f"A text of {len(ids)} tokens is longer than the {room} that {model} takes at once; shorten it or choose "
            f"another window policy."
        )
    # A whole text mixes as the policy says; a continuation is always scored token by token, once.
    window = policy.window if begin == 0 else "strided"
    cuts, mix = cut_windows(len(ids), room, window, RELEASED_CAUSAL)
    notes["windowed"] += len(cuts) > 1
    parts: list[TokenPart] = []
    scored: list[range] = []
    first = 1 if bos is None else 0
    for cut in cuts:
        start = max(cut.scored_from, begin, cut.begin + first)
        piece = ids[cut.begin : cut.end]
        if bos is not None:
            piece = np.concatenate([np.asarray([bos], dtype=np.int32), piece])
        if len(piece) < 2 or start >= cut.end:
            continue
        parts.append(TokenPart(piece, start - cut.begin + (bos is not None)))
        scored.append(range(start, cut.end))
    if mix.rule == "means" and len(parts) != len(cuts):
        mix = Mix("sum")
    if not parts:
        notes["nothing to score"] += 1
        return Prepared((), tokens=0, spans=(), notes=+notes)
    tokens = len(ids) if mix.rule == "means" else _count(scored)
    return Prepared(tuple(parts), mix, tokens, spans_of(spans, scored, tokens, context_chars), +notes)


def _count(scored: Sequence[range]) -> int:
    """Count the positions that lie in any of these ranges."""
    return len(scored[0]) if len(scored) == 1 else len(set().union(*scored))


def spans_of(
    spans: Spans, scored: Sequence[range], tokens: int, context_chars: int
) -> tuple[tuple[int, int], ...] | None:
    """Return where the scored tokens lie in the continuation, if spans are known and each token is scored once."""
    if not spans or sum(map(len, scored)) != tokens:
        return None
    chosen = (spans[i] for piece in scored for i in piece)
    return tuple((max(begin - context_chars, 0), end - context_chars) for begin, end in chosen)
