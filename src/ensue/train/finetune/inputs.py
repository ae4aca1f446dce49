"""From examples to token sequences: what of each is read, tokenised once, framed, cut where too long, spans found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ensue.benchmarks.nlu.examples import Example, Form
from ensue.errors import EnsueError

_CHUNK = 20_000
Offsets = list[tuple[int, int]]

GAP = "@placeholder"
# COPA asks in one word; the encoder reads a sentence.
# Nothing is asked where a choice just goes on (SWAG).
_QUESTIONS = {"cause": " What brought this about?", "effect": " What came of this?", "": ""}


class Wording(NamedTuple):
    """One sequence: its texts, and whether only the first of them may be cut when it is too long."""

    texts: tuple[str, ...]
    keep_second: bool = False


def wordings(form: Form, example: Example) -> list[Wording]:
    """Return the sequences of an example: one, or one for every choice in their order."""
    where = example.where or example.id
    if form == "choice":
        premise, asked = example.texts
        if asked not in _QUESTIONS:
            raise EnsueError(f"{where}: the question is {asked!r}; it must be cause or effect.")
        return [Wording((premise + _QUESTIONS[asked], choice), True) for choice in example.choices]
    if form == "answers":
        passage, question, answer = example.texts
        return [Wording((passage, f"{question} {answer}"), True)]
    if form == "entity":
        passage, query = example.texts
        if GAP not in query or not example.choices:
            raise EnsueError(f"{where}: a query needs {GAP} and entities to fill it with.")
        return [Wording((passage, query.replace(GAP, entity)), True) for entity in example.choices]
    return [Wording(example.texts)]


class Specials(NamedTuple):
    """Special tokens at one place, with their types."""

    ids: tuple[int, ...] = ()
    types: tuple[int, ...] = ()


class Frame(NamedTuple):
    """What stands before, between and after the texts, and the type of each text's tokens."""

    specials: tuple[Specials, ...]
    types: tuple[int, ...]

    @property
    def extra(self) -> int:
        """How many tokens are not of the texts."""
        return sum(len(part.ids) for part in self.specials)


def find_frames(tokenizer: Any) -> tuple[Frame, Frame]:
    """Return the special tokens and types a tokenizer puts around one text and around two, as it encodes words.

    One that puts nothing between two texts (of most left-to-right models) gets a line break there.
    """
    if not tokenizer.is_fast:
        raise EnsueError(
            "Fine-tuning needs a tokenizer that tells where its tokens lie (tokenizer.json); this one is slow."
        )
    one = _frame(tokenizer("one", return_token_type_ids=True), 1)
    two = _frame(tokenizer("one", "two", return_token_type_ids=True), 2)
    before, between, after = two.specials
    if not between.ids:
        ids = tuple(tokenizer("\n", add_special_tokens=False)["input_ids"])
        between = Specials(ids, (0,) * len(ids))
    return one, Frame((before, between, after), two.types)


def _frame(encoding: Any, texts: int) -> Frame:
    """Return the specials by how many of the texts have begun before them."""
    sequences = encoding.sequence_ids(0)
    ids = encoding["input_ids"]
    types = encoding.get("token_type_ids") or [0] * len(ids)
    places: list[list[int]] = [[] for _ in range(texts + 1)]
    begun = 0
    for position, sequence in enumerate(sequences):
        if sequence is None:
            places[begun].append(position)
        else:
            begun = sequence + 1
    parts = tuple(Specials(tuple(ids[p] for p in place), tuple(types[p] for p in place)) for place in places)
    return Frame(parts, tuple(types[sequences.index(text)] for text in range(texts)))


def kept_lengths(lengths: Sequence[int], room: int, keep_second: bool) -> list[int]:
    """Return how many tokens of each text stay when `room` tokens of text may.

    The longer of two texts is cut first, down to the other; with `keep_second` only the first is cut, unless the
    second alone is too long.

    >>> kept_lengths([9, 3], 8, False), kept_lengths([9, 7], 8, False), kept_lengths([9, 7], 8, True)
    ([5, 3], [4, 4], [1, 7])
    """
    if sum(lengths) <= room:
        return list(lengths)
    if len(lengths) == 1:
        return [room]
    first, second = lengths
    if keep_second:
        return [max(room - second, 0), min(second, room)]
    half = room // 2
    if first >= second:
        second = min(second, half)
        return [room - second, second]
    first = min(first, room - half)
    return [first, room - first]


class TokenRow(NamedTuple):
    """One sequence for the encoder; `spans` are token positions, from and up to; `cut` if tokens were left out."""

    ids: list[int]
    types: list[int]
    spans: tuple[tuple[int, int], ...] = ()
    cut: bool = False


class Tokenised(NamedTuple):
    """A text's tokens, and the characters of each where spans are looked for."""

    ids: list[int]
    offsets: Offsets


class Sequences(NamedTuple):
    """The sequences of examples: `joint` ones (all texts of a wording in one), `count` of them an example, and
    those of each text `apart`, two an example; one of both may be left out (empty)."""

    joint: list[TokenRow]
    counts: list[int]
    apart: list[TokenRow]

    @property
    def cut(self) -> int:
        """How many sequences lost tokens."""
        return sum(row.cut for row in (*self.joint, *self.apart))


class Inputs:
    """Makes sequences of at most `max_length` tokens; texts it has seen are not tokenised again."""

    def __init__(self, tokenizer: Any, max_length: int) -> None:
        self._tokenizer, self._max = tokenizer, max_length
        self._frames = find_frames(tokenizer)
        self._known: dict[str, Tokenised] = {}
        if max_length <= self._frames[1].extra + 1:
            raise EnsueError(f"max_length={max_length} leaves no room for two texts; give a larger one.")

    def sequences(self, form: Form, examples: Sequence[Example], *, joint: bool, apart: bool) -> Sequences:
        """Return the sequences of all examples, in order."""
        worded = [wordings(form, example) for example in examples] if joint else []
        singles = [text for example in examples for text in example.texts[:2]] if apart else []
        texts = [text for group in worded for wording in group for text in wording.texts]
        with_spans = form in ("word", "coreference")
        self._learn([*texts, *singles], with_spans)
        rows = [
            self._row(wording, example)
            for example, group in zip(examples, worded, strict=joint)
            for wording in group
        ]
        counts = [len(group) for group in worded]
        return Sequences(rows, counts, [self._row(Wording((text,)), None) for text in singles])

    def _learn(self, texts: Iterable[str], offsets: bool) -> None:
        new = [
            text
            for text in dict.fromkeys(texts)
            if text not in self._known or (offsets and not self._known[text].offsets)
        ]
        for start in range(0, len(new), _CHUNK):
            chunk = new[start : start + _CHUNK]
            found = self._tokenizer(
                chunk,
                add_special_tokens=False,
                return_attention_mask=False,
                return_token_type_ids=False,
                return_offsets_mapping=offsets,
                verbose=False,
            )
            places = found["offset_mapping"] if offsets else [[]] * len(chunk)
            for text, ids, where in zip(chunk, found["input_ids"], places, strict=True):
                self._known[text] = Tokenised(ids, where)

    def _row(self, wording: Wording, example: Example | None) -> TokenRow:
        frame = self._frames[len(wording.texts) - 1]
        tokens = [self._known[text] for text in wording.texts]
        lengths = [len(text.ids) for text in tokens]
        kept = kept_lengths(lengths, self._max - frame.extra, wording.keep_second)
        spans = _token_spans(example, tokens) if example is not None and example.spans else []
        begins = [
            _window(length, keep, [(s, e) for t, s, e in spans if t == text], example)
            for text, (length, keep) in enumerate(zip(lengths, kept, strict=True))
        ]
        pieces = [
            text.ids[begin : begin + keep] for text, begin, keep in zip(tokens, begins, kept, strict=True)
        ]
        row, places = _framed(frame, pieces)
        moved = tuple((places[t] + s - begins[t], places[t] + e - begins[t]) for t, s, e in spans)
        return row._replace(spans=moved, cut=sum(kept) < sum(lengths))


def _framed(frame: Frame, pieces: Sequence[list[int]]) -> tuple[TokenRow, list[int]]:
    """Texts with the specials around them, and where each text begins."""
    ids, types = list(frame.specials[0].ids), list(frame.specials[0].types)
    places = []
    for piece, kind, special in zip(pieces, frame.types, frame.specials[1:], strict=True):
        places.append(len(ids))
        ids += [*piece, *special.ids]
        types += [*[kind] * len(piece), *special.types]
    return TokenRow(ids, types), places


def _token_spans(example: Example, tokens: Sequence[Tokenised]) -> list[tuple[int, int, int]]:
    """Each span as (text, first token, token after the last): all tokens that share a character with it."""
    found = []
    for span in example.spans:
        offsets = tokens[span.text].offsets
        touched = [i for i, (start, end) in enumerate(offsets) if start < span.end and end > span.start]
        if not touched:
            said = example.texts[span.text][span.start : span.end]
            raise EnsueError(
                f"{example.where or example.id}: the tokenizer keeps nothing of the marked words {said!r}, "
                f"so they cannot be looked at; check the span."
            )
        found.append((span.text, touched[0], touched[-1] + 1))
    return found


def _window(length: int, keep: int, spans: Sequence[tuple[int, int]], example: Example | None) -> int:
    """Return where the kept part of a text begins: at its start, or as late as its last span needs."""
    if keep >= length or not spans:
        return 0
    begin = max(0, max(end for _, end in spans) - keep)
    if begin > min(start for start, _ in spans):
        where = (example.where or example.id) if example is not None else "An example"
        raise EnsueError(
            f"{where}: its marked words are further apart than the {keep} tokens that fit; give a larger "
            f"max_length, or a model that takes more."
        )
    return begin
