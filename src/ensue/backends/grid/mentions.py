"""What each sentence mentions: nouns and pronouns with their roles, as spaCy's small English pipeline parses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ensue.errors import TooLong
from ensue.fetch.pipeline import load_spacy
from ensue.progress import Progress, ignore

# Heads of noun phrases, nouns before another noun, personal pronouns.
KINDS = HEAD, MODIFIER, PRONOUN = range(3)
# Roles by rank: of an entity that a sentence mentions more than once, the highest stands in the grid.
ABSENT, OTHER, OBJECT, SUBJECT = range(4)
ROLE_SIGNS = "-XOS"

# What may be said of a mention beside its role; an entity has a property where one of its mentions has it.
PROPERTIES = ("proper", "pronoun", "person", "organisation", "place", "plural", "modified", "definite")
_KINDS = {"PERSON": "person", "ORG": "organisation", "GPE": "place", "LOC": "place", "FAC": "place"}
_MODIFIERS = frozenset({"amod", "compound", "nmod", "nummod", "poss", "prep", "relcl", "acl", "appos"})
# Grammatical functions by spaCy's labels; passives are read by what is done to whom.
_FUNCTIONS = {"nsubj": SUBJECT, "csubj": SUBJECT, "dobj": OBJECT, "nsubjpass": OBJECT, "dative": OBJECT}

# Personal pronouns by the one they are forms of; those that stand for what was never named are left out.
_PRONOUNS = {
    form: forms.split()[0]
    for forms in ("he him his himself", "she her hers herself", "it its itself", "they them their theirs themselves",
                  "i me my mine myself", "we us our ours ourselves", "you your yours yourself yourselves")
    for form in forms.split()
}  # fmt: skip

_PORTION = 1000
# Parses are kept of at most so many sentences; each is a few hundred bytes.
_MOST_KEPT = 200_000


class Mention(NamedTuple):
    """A noun or pronoun of a sentence: the word in lower case, its role, which of `KINDS` it is, its properties as
    bits in the order of `PROPERTIES`."""

    head: str
    role: int
    kind: int
    properties: int


class MentionParser:
    """Parses sentences, each on its own and each distinct one once, so that every order of a text costs one parse."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Mention, ...]] = {}

    def parse(self, sentences: Iterable[str], progress: Progress = ignore) -> dict[str, tuple[Mention, ...]]:
        """Return the mentions of each distinct sentence, in the order in which they stand in it."""
        wanted = list(dict.fromkeys(sentences))
        fresh = [sentence for sentence in wanted if sentence not in self._known]
        found = {sentence: self._known.get(sentence, ()) for sentence in wanted}
        if len(self._known) + len(fresh) > _MOST_KEPT:
            self._known.clear()
        for begin in range(0, len(fresh), _PORTION):
            portion = fresh[begin : begin + _PORTION]
            found.update(zip(portion, _parsed(portion), strict=True))
            progress(begin + len(portion), len(fresh), "sentences")
        self._known.update((sentence, found[sentence]) for sentence in fresh)
        return found


# What all models and trainings of a process parse with.
PARSER = MentionParser()


def _parsed(sentences: Sequence[str]) -> Iterator[tuple[Mention, ...]]:
    pipeline = load_spacy("The entity grid", "grid")
    limit = pipeline.max_length
    if long := [place for place, sentence in enumerate(sentences) if len(sentence) > limit]:
        raise TooLong(
            f"A sentence of {max(map(len, sentences)):,} characters is more than the {limit:,} that spaCy reads; "
            f"divide it.",
            long,
        )
    for parsed in pipeline.pipe(sentences, batch_size=128):
        yield tuple(_mentions(parsed))


def _mentions(parsed: Any) -> Iterator[Mention]:
    for token in parsed:
        word = token.lower_
        if token.pos_ in ("NOUN", "PROPN") and any(map(str.isalpha, word)):
            kind = MODIFIER if token.dep_ in ("compound", "nmod") else HEAD
        elif token.pos_ == "PRON" and word in _PRONOUNS and token.dep_ != "expl":
            kind, word = PRONOUN, _PRONOUNS[word]
        else:
            continue
        yield Mention(word, OTHER if kind == MODIFIER else role_of(token), kind, _properties(token))


def role_of(token: Any) -> int:
    """Return a word's role by its grammatical function; what is joined by *and* has that of the first."""
    while token.dep_ == "conj" and token.head.pos_ in ("NOUN", "PROPN", "PRON"):
        token = token.head
    if token.dep_ == "pobj" and token.head.dep_ == "agent":
        return SUBJECT
    return _FUNCTIONS.get(token.dep_, OTHER)


def _properties(token: Any) -> int:
    children = list(token.children)
    holds = {
        "proper": token.pos_ == "PROPN",
        "pronoun": token.pos_ == "PRON",
        "plural": token.tag_ in ("NNS", "NNPS"),
        "modified": any(child.dep_ in _MODIFIERS for child in children),
        "definite": any(child.dep_ == "det" and child.lower_ == "the" for child in children),
        _KINDS.get(token.ent_type_, ""): True,
    }
    return sum(1 << place for place, name in enumerate(PROPERTIES) if holds.get(name))
