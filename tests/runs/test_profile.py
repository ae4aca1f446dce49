"""Profiles from Python: every number against plain forward passes, and what each text is cut into."""

from __future__ import annotations

import gc
import shutil
import weakref

import numpy as np
import pytest

import ensue
from ensue.errors import EnsueError
from ensue.fetch.catalog import catalog
from ensue.fetch.store import folder_of
from ensue.models.profile import Profile
from ensue.models.request import Policy, Request
from ensue.runs.calibrate import calibrate_model
from ensue.runs.profile import in_hundred, open_profiler, portions, profile_of_row, profiles_of
from ensue.runs.texts import Text, whole_texts
from ensue.scoring.verdict import BELONGING
from tests.scoring import naive
from tests.support import tiny
from tests.support.command import write_lines
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


def test_a_window_in_which_tokens_are_scored_twice_is_refused_before_any_work():
    for window in ("average", "released"):
        with pytest.raises(
            EnsueError, match=f"every token once, so window is strided or refuse, not {window}"
        ):
            open_profiler("no such model", policy=Policy(window=window))


@pytest.fixture
def sound(tmp_path, monkeypatch):
    """A home of its own, and texts that are sound."""
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    rows = [{"id": str(n), "text": " ".join(document(n, 6))} for n in range(24)]
    path = write_lines(tmp_path / "sound.jsonl", rows)
    return whole_texts(
        str(path), {"joiner": " ", "encoding": "utf-8", "text_column": None, "language": "en"}, limit=None
    )


def test_a_calibration_made_otherwise_is_told_of(sound, llama, tmp_path):
    kept = tmp_path / "kept.json"
    calibrate_model(str(llama), sound, about="news", encoder=None, output=kept)
    text = " ".join(document(1, 6))
    (same,) = ensue.profile([text], model=str(llama), calibration=kept)
    assert "otherwise" not in same.why
    short = Policy(window="strided", overflow="truncate", max_length=256)
    (found,) = ensue.profile([text], model=str(llama), calibration=kept, policy=short)
    said = "(the calibration was made otherwise: window:strided/512 then, window:strided/256 now)"
    assert found.why == f"{same.why} {said}"
    assert found.false_alarm == same.false_alarm


def test_a_calibration_with_another_encoder_is_named(sound, encoder):
    calibrate_model("random", sound, about="news", encoder=str(encoder))
    text = " ".join(document(1, 6))
    (found,) = ensue.profile([text], model="random", encoder=None)
    said = (
        f"with encoder=none and reader=none, but there is one with encoder={encoder} and reader=none; `ensue"
    )
    assert said in found.why
    assert "--encoder none` makes one" in found.why
    (found,) = ensue.profile([text], model="random")
    assert found.false_alarm is not None


def test_a_reader_is_part_of_a_calibration_and_can_be_left_out(sound, encoder, tmp_path):
    reader = tiny.save_reader(tmp_path / "reader")
    calibrate_model("random", sound, about="news", encoder=str(encoder), reader=str(reader))
    sentences = document(1, 6)
    (found,) = ensue.profile([sentences], model="random")
    (read,) = ensue.load_model(str(reader)).read([sentences])
    assert [one.belonging for one in found.sentences] == pytest.approx(read, abs=1e-4)
    assert found.false_alarm is not None
    (without,) = ensue.profile([sentences], model="random", reader=None)
    assert without.false_alarm is None
    assert f"reader=none, but there is one with encoder={encoder} and reader={reader}" in without.why
    assert "--reader none` makes one" in without.why
    calibrate_model("random", sound, about="news", encoder=str(encoder), reader=None)
    (without,) = ensue.profile([sentences], model="random", reader=None)
    assert without.false_alarm is not None
    assert without.sentences[2].belonging is None
    weight = (found.sentences[2].standing - without.sentences[2].standing) / read[2]
    assert weight == pytest.approx(BELONGING, rel=1e-2)
    assert open_profiler("random").reader is not None, "one with a reader comes first"
    with pytest.raises(EnsueError, match=r"can only encode text \(for the reader; `none` does without one\)"):
        ensue.profile([sentences], model="random", reader=str(encoder))


def test_what_stands_beside_a_model_is_loaded_once_and_goes_with_it(encoder):
    model = ensue.load_model("random")
    first, second = (open_profiler(model, encoder=str(encoder)).encoder for _ in range(2))
    assert first is second is not open_profiler("random", encoder=str(encoder)).encoder
    held = weakref.ref(first)
    del model, first, second
    gc.collect()
    assert held() is None


def test_an_encoder_that_is_gone_is_one_sentence(sound, tmp_path):
    gone = tiny.save_encoder(tmp_path / "gone")
    calibrate_model("random", sound, about="news", encoder=str(gone))
    gone.rename(tmp_path / "elsewhere")
    with pytest.raises(EnsueError, match=r"made with .*/gone, which cannot be had here .* --set encoder"):
        ensue.profile(["One. Two. Three. Four."], model="random")
    (found,) = ensue.profile([" ".join(document(1, 6))], model="random", encoder=str(tmp_path / "elsewhere"))
    assert found.false_alarm is not None


def test_the_folder_of_a_pulled_encoder_is_the_encoder(sound, encoder, tmp_path):
    folder = folder_of(catalog()["minilm"])
    shutil.copytree(encoder, folder)
    calibrate_model("random", sound, about="news", encoder=str(folder))
    profiler = open_profiler("random")
    assert profiler.calibration is not None
    assert profiler.calibration.encoder == "minilm"
    assert open_profiler("random", encoder="minilm").calibration == profiler.calibration
    assert open_profiler("random", encoder=f"{folder.parent}/./{folder.name}").calibration is not None


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


GERMAN = "Dr. Keller kam wie jeden Morgen am 3. Mai herein. Er kaufte z. B. zwei Brötchen. Dann ging er."


def test_a_text_is_split_in_its_language(llama):
    (found,), (english,) = (
        ensue.profile([GERMAN], model=str(llama), encoder=None, language=language)
        for language in ("de", "en")
    )
    assert [one.text for one in found.sentences] == [
        "Dr. Keller kam wie jeden Morgen am 3. Mai herein.",
        "Er kaufte z. B. zwei Brötchen.",
        "Dann ging er.",
    ]
    assert len(english.sentences) == 4, "it says 3. here"
    with pytest.raises(EnsueError, match="ISO 639 code, such as en or de, not 'german'"):
        ensue.profile([GERMAN], model=str(llama), language="german")


def test_a_key_holds_the_text_the_model_and_the_settings(llama):
    one, other = Text("a", Request("One.")), Text("a", Request("Two."))
    profiler = open_profiler("random")
    keys = {
        profiler.key(one, " "),
        profiler.key(other, " "),
        open_profiler("unigram").key(one, " "),
        open_profiler("random", rate=0.2).key(one, " "),
        profiler.key(Text("b", Request("One.")), " "),
        profiler.key(Text("a", Request("One."), language="de"), " "),
    }
    assert len(keys) == 6
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
