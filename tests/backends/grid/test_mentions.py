"""What sentences mention by spaCy's real pipeline, and that each is parsed once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ensue.backends.grid.mentions import MODIFIER, PRONOUN, PROPERTIES, ROLE_SIGNS, Mention, MentionParser


def roles(mentions: tuple[Mention, ...]) -> list[str]:
    return [f"{each.head} {ROLE_SIGNS[each.role]}" for each in mentions if each.kind != MODIFIER]


@pytest.mark.slow
def test_roles_are_grammatical_functions_and_passives_are_turned_round() -> None:
    pytest.importorskip("spacy")
    sentences = [
        "The farmer and his daughter sold two old horses at the market.",
        "The horses were bought by a miller from Germany.",
        "...",
        "It made her happy that she had sold them to him, and it rained on their Ford truck.",
    ]
    parser = MentionParser()
    found = parser.parse(sentences)
    assert roles(found[sentences[0]]) == ["farmer S", "he X", "daughter S", "horses O", "market X"]
    assert roles(found[sentences[1]]) == ["horses O", "miller S", "germany X"]
    assert found[sentences[2]] == ()
    pronouns = [each.head for each in found[sentences[3]] if each.kind == PRONOUN]
    assert [each for each in pronouns if each != "it"] == ["she", "she", "they", "he", "they"]
    assert ("ford", MODIFIER) in [(each.head, each.kind) for each in found[sentences[3]]]
    properties = {
        each.head: {name for place, name in enumerate(PROPERTIES) if each.properties >> place & 1}
        for sentence in reversed(sentences)
        for each in found[sentence]
    }
    assert properties["horses"] == {"plural", "modified"}
    assert properties["germany"] == {"proper", "place"}
    assert "definite" in properties["market"]


@pytest.mark.slow
def test_a_sentence_is_parsed_once_however_often_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy")
    told: list[tuple[int, int, str]] = []
    parser = MentionParser()
    first = parser.parse(["A dog barked.", "A cat slept.", "A dog barked."], lambda *each: told.append(each))
    again = parser.parse(["A cat slept.", "A bird sang.", "A dog barked."], lambda *each: told.append(each))
    # Progress is told of what is parsed alone.
    assert told == [(2, 2, "sentences"), (1, 1, "sentences")]
    assert again["A dog barked."] is first["A dog barked."]
    assert list(again) == ["A cat slept.", "A bird sang.", "A dog barked."]


def test_without_spacy_one_sentence_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['spacy'] = None\n"
        "from ensue.backends.grid.mentions import PARSER\n"
        "from ensue.errors import EnsueError\n"
        "try:\n    PARSER.parse(['A dog barked.'])\nexcept EnsueError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == (
        "The entity grid needs spaCy, which is not installed; run: pip install 'ensue[grid]'."
    )
