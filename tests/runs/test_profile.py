"""Profiles from Python: every number against plain forward passes, and what each text is cut into."""

from __future__ import annotations

import numpy as np
import pytest

import ensue
from ensue.errors import EnsueError
from ensue.models.profile import Profile
from ensue.models.request import Request
from ensue.runs.profile import in_hundred, open_profiler, portions, profile_of_row, profiles_of
from ensue.runs.texts import Text
from tests.scoring import naive
from tests.support import tiny
from tests.support.corpus import document


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "llama", max_length=512)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny.save_encoder(tmp_path_factory.mktemp("models") / "encoder")


def logprob(model, context: str, continuation: str) -> tuple[float, int]:
    """The log-likelihood of a continuation by one forward pass, and its tokens."""
    before, ids = (
        model.tokenizer(text, add_special_tokens=False)["input_ids"]
        for text in (context, context + continuation)
    )
    assert ids[: len(before)] == before
    found = naive.token_logprobs(model.network, ids, len(before))
    return sum(found), len(found)


def test_gain_is_surprisal_alone_less_surprisal_in_context(llama):
    sentences = document(5, 6)
    (found,) = ensue.profile([" ".join(sentences)], model=str(llama))
    model = ensue.load_model(str(llama))
    assert [one.text for one in found.sentences] == sentences
    assert (found.sentences[0].gain, found.sentences[0].received) == (None, None)
    for place in range(1, 6):
        in_context, tokens = logprob(model, " ".join(sentences[:place]), f" {sentences[place]}")
        alone, _ = logprob(model, "\n\n", sentences[place])
        one = found.sentences[place]
        assert one.received == pytest.approx(in_context - alone, abs=1e-3)
        assert one.gain == pytest.approx((in_context - alone) / tokens, abs=1e-3)
        assert one.surprisal == pytest.approx(-in_context / tokens, abs=1e-3)
        assert one.tokens == tokens
        assert found.text[one.start : one.end] == one.text


def test_likeness_is_the_encoder_s(llama, encoder):
    sentences = document(6, 3)
    (found,) = ensue.profile([sentences], model=str(llama), encoder=str(encoder))
    vectors = ensue.load_model(str(encoder)).encode(sentences).astype(float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    expected = [(cosines[place].sum() - 1) / 2 for place in range(3)]
    assert [one.likeness for one in found.sentences] == pytest.approx(expected, abs=1e-3)
    (without,) = ensue.profile([sentences], model=str(llama), encoder=None)
    assert {one.likeness for one in without.sentences} == {None}


def test_without_a_calibration_there_is_no_verdict_but_a_command(llama, tmp_path, monkeypatch):
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path))
    (found,) = ensue.profile([" ".join(document(1, 5))], model=str(llama))
    assert (found.stands_out, found.least, found.false_alarm) == (None, None, None)
    assert found.verdict == "No telling."
    assert f"`ensue calibrate {llama} --data DOCUMENTS` makes one" in found.why
    (found,) = ensue.profile(["One. Two."], model="random", encoder=None)
    assert "`ensue calibrate random --data DOCUMENTS --encoder none` makes one" in found.why
    assert {one.standing for one in found.sentences} == {None}


FORMS = {
    "two sentences": "Rain fell. It was cold.",
    "one word": "Rain",
    "no word": "* * *",
    "list": "eggs\nmilk\nbrown bread\ntwo onions\nsalt",
    "dialogue": "“Where?” he said.\n“There.”\n“Oh.”\n“Come.”\n“No.”",
    "code": "def f(x):\n    return x\n\n\n\nprint(f(1))\n}\n",
    "chinese": "今天天气很好。我们去公园吧！你来吗？好的。我们走。",
    "arabic": "مرحبا بالعالم. كيف حالك؟ أنا بخير. شكرا لك. إلى اللقاء.",
    "spaces": "\n\n  One.\t\tTwo. \n\n\n Three.   Four.\u2028Five.\r\n\r\nSix.\n\n",
    "zero width": "One\u200b.\u200b Two\ufeff. Three. Four. Five.",
}


@pytest.mark.parametrize("name", FORMS)
def test_texts_of_any_form_have_a_profile(llama, name):
    (found,) = ensue.profile([FORMS[name]], model=str(llama))
    shown = "".join("".join(found.text[one.start : one.end]) for one in found.sentences)
    assert "".join(shown.split()) == "".join(FORMS[name].split())
    assert sum(one.tokens for one in found.sentences) == found.tokens


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["One.", " \n"], "Text 1 is empty"),
        ([[]], "Text 0 is empty"),
        ("One. Two.", "put it in a list"),
        ([None], "Text 0 is empty"),
        ([3], "Text 0 has a number"),
        ([b"One."], "Text 0 has an object"),
        ([["One.", 2]], "a number as sentence 2"),
        ([["One.", " "]], "an empty sentence .number 2"),
        (["One\0."], "NUL"),
        ([["One", "\ud83d."]], "half a character"),
    ],
)
def test_what_is_no_text_is_one_sentence(texts, said):
    with pytest.raises(EnsueError, match=said):
        ensue.profile(texts, model="random")


@pytest.mark.parametrize("rate", [0, 1, -0.1, float("nan"), "0.1", None])
def test_what_is_no_rate_is_one_sentence(rate):
    with pytest.raises(EnsueError, match="false_alarms is a share between 0 and 1, not"):
        ensue.profile(["One. Two."], model="random", false_alarms=rate)


def test_texts_come_in_portions_and_one_at_a_time():
    taken = []

    def texts():
        for place in range(10):
            taken.append(place)
            yield Text(str(place), Request("a" * 100_000))

    model = ensue.load_model("random")
    first = next(portions(model, texts()))
    assert len(first) == 3
    assert taken == [0, 1, 2]
    assert [len(one) for one in portions(model, texts())] == [3, 3, 3, 1]


def test_a_row_and_its_text_make_the_profile_again(llama):
    text = Text("a", Request("  One here.\n\nTwo there. Three."))
    profiler = open_profiler(str(llama))
    (found,) = profiles_of(profiler, [text], " ")
    assert isinstance(found, Profile)
    assert profile_of_row(text, " ", found.row()) == found


def test_a_key_holds_the_text_the_model_and_the_settings(llama):
    one, other = Text("a", Request("One.")), Text("a", Request("Two."))
    profiler = open_profiler("random")
    keys = {
        profiler.key(one, " "),
        profiler.key(other, " "),
        open_profiler("unigram").key(one, " "),
        open_profiler("random", rate=0.2).key(one, " "),
        profiler.key(Text("b", Request("One.")), " "),
    }
    assert len(keys) == 5
    assert open_profiler("random").key(one, " ") in keys


@pytest.mark.parametrize(
    ("share", "words"), [(0.0, "fewer than 1 in 100"), (0.0051, "1 in 100"), (0.1, "10 in 100")]
)
def test_shares_are_written_as_so_many_in_a_hundred(share, words):
    assert in_hundred(share) == words


STORY = (
    "The ferry left the island at dawn. Anna stood on deck with her brother, watching the harbour grow small. The "
    "sea was calm, and gulls followed them for a mile.\n\nBy noon they could see the mainland. {}Her brother pointed "
    "at the lighthouse where their father had worked. Neither of them said anything until the boat touched the quay."
)


@pytest.mark.slow
def test_smollm2_finds_the_alien_sentence_of_a_story_and_none_in_the_story(smollm2_folder):
    alien = "The central bank raised its benchmark interest rate by half a point on Thursday. "
    broken, sound = ensue.profile([STORY.format(alien), STORY.format("")], model="smollm2")
    assert broken.verdict == f"Sentence 5 stands out: “{alien.strip()}”"
    assert (broken.stands_out, sound.stands_out, sound.verdict) == (4, None, "Nothing stands out.")
    assert broken.false_alarm < 0.05 < sound.false_alarm
