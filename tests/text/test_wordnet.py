"""The WordNet reader: a small database written here, the real one against NLTK's reader, and what can be wrong."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from ensue.errors import EnsueError
from ensue.fetch.catalog import catalog
from ensue.fetch.store import pull
from ensue.text.wordnet import WordNet, find_wordnet, load_wordnet
from tests.support.wordnet import write_wordnet


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_wordnet(tmp_path / "wordnet")


def test_synonyms_of_all_parts_of_speech(small: Path) -> None:
    wordnet = WordNet(small)
    assert wordnet.synonyms("Mill") == {"mill", "grinder", "factory", "grind"}
    assert wordnet.synonyms("mills") == wordnet.synonyms("mill")
    assert wordnet.synonyms("scared") == {"afraid", "scared"}
    assert wordnet.synonyms("ladies") == {"lady", "Dame"}
    assert wordnet.synonyms("ran") == {"run", "go"}
    assert wordnet.synonyms("unheard") == frozenset()


def test_base_forms(small: Path) -> None:
    wordnet = WordNet(small)
    assert wordnet.base_forms("finest", "adj") == ["fine"]
    assert wordnet.base_forms("better", "adv") == ["well"]
    assert wordnet.base_forms("going", "verb") == ["go"]
    assert wordnet.base_forms("going", "noun") == []


def test_where_it_is_looked_for(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSUE_WORDNET", str(small))
    assert find_wordnet() == small
    assert load_wordnet(small) is load_wordnet(small)
    monkeypatch.setenv("ENSUE_WORDNET", str(small.parent))
    assert find_wordnet() == small
    monkeypatch.delenv("ENSUE_WORDNET")
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    inside = write_wordnet(tmp_path / "nltk" / "corpora" / "wordnet")
    assert find_wordnet() == inside


def test_nobody_has_it_and_a_folder_that_has_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensue.text.wordnet._PLACES", (str(tmp_path / "nowhere"),))
    monkeypatch.delenv("ENSUE_WORDNET", raising=False)
    monkeypatch.delenv("NLTK_DATA", raising=False)
    assert find_wordnet() is None
    monkeypatch.setenv("ENSUE_WORDNET", str(tmp_path))
    with pytest.raises(EnsueError, match=r"holds no WordNet: there is no index\.noun"):
        find_wordnet()


def test_broken_files_are_named_with_their_line(small: Path) -> None:
    index = small / "index.verb"
    whole = index.read_text()
    index.write_text(whole + "stroll v many\n")
    with pytest.raises(EnsueError, match=r"index\.verb, line 6, is not a line of WordNet's index"):
        WordNet(small)
    index.write_text(whole + "stroll v 2 0 2 0 00000061\n")
    with pytest.raises(EnsueError, match=r"index\.verb, line 6, promises 2 synsets and names 1"):
        WordNet(small)
    index.write_text(whole + "stroll v 1 0 1 0 00000007\n")
    with pytest.raises(EnsueError, match=r"data\.verb has no synset at byte 7, which index\.verb names"):
        WordNet(small).synonyms("stroll")
    (small / "adv.exc").unlink()
    with pytest.raises(EnsueError, match=r"adv\.exc cannot be read"):
        WordNet(small)


WORDS = """
    the mills were ground down by wolves who had been better fed than afraid men, and an axe was lying in the boxes
    churches knives ladies hottest ran oxen glasses analyses leaves data worse studied dying goes saw left mine
    felt fine finest larger bass set houses homes state united Paris bible english it 's 3 u.s.a . , co-operate
"""


def test_the_real_one_as_nltk_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = find_wordnet() or pull(catalog()["wordnet"])
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):
        def map_wn(self, version: str = "wordnet") -> None:
            """Nothing to map: there are no other languages here."""

    # NLTK reads only from its own folders, and wants the names of lexicographers' files, which Debian leaves out.
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    for path in folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "lexnames").write_text("".join(f"{i:02d}\tname{i}\t1\n" for i in range(45)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = Reader(str(tmp_path), None)
    wordnet = WordNet(folder)
    for word in WORDS.split():
        synsets = reader.synsets(word)
        names = {lemma.name() for synset in synsets for lemma in synset.lemmas()}
        assert wordnet.synonyms(word) == {name for name in names if "_" not in name}, word
