"""The pipeline against a naive loop over pairs; each request done once; a killed run goes on as it was."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.qags.candidates import AnswerCandidate, choose_answers
from ensue.benchmarks.qags.pipeline import EMPTY, NO_CANDIDATES, STEPS, Pair, QagsModels, examine, once
from ensue.benchmarks.qags.questions import (
    DIFFERENT,
    DUPLICATE,
    FAST,
    NO_CHANCE,
    NO_MARK,
    PAPER,
    STRICT,
    UNANSWERED,
    Keeping,
)
from ensue.benchmarks.qags.scoring import NOTHING_KEPT, scored
from ensue.errors import EnsueError
from ensue.metrics.answers import exact_match, normalised, token_f1
from ensue.models.protocols import AnswerSpan
from ensue.records import Records
from tests.benchmarks.qags.toys import FAITHFUL, PAIRS, SOURCE, WRONG, NameAfter, NameFinder, WordsBefore


def toys() -> QagsModels:
    return QagsModels(NameFinder(), WordsBefore(), NameAfter())


def naive(pair: Pair, keeping: Keeping, exact: bool) -> float | None:
    """One pair after the book: nothing shared, nothing batched, no padding."""
    if not pair.summary.strip():
        return None
    asks, answers = WordsBefore(), NameAfter()
    found = next(NameFinder().candidates([pair.summary]))
    made = []
    for one in choose_answers(found, pair.summary, n=STRICT.asking.answers):
        for question, score in asks.ask([pair.summary], [AnswerSpan(one.start, one.end)], count=10)[0]:
            if score == score and "?" in question:
                made.append((score, question[: question.index("?") + 1], one.text))
    made.sort(key=lambda each: -each[0])
    kept: list[str] = []
    for _, question, expected in made:
        given = answers.answer([question], [pair.summary])[0].text
        right = {"same": exact_match(given, expected) == 1.0, "answered": True, "any": True}[keeping.agree]
        if (
            question in kept
            or len(question.split()) < 3
            or (keeping.agree != "any" and not (given and right))
        ):
            continue
        kept.append(question)
    values = []
    for question in kept[: keeping.questions]:
        by_source = answers.answer([question], [pair.source])[0].text
        by_summary = answers.answer([question], [pair.summary])[0].text
        if exact or not by_source or not by_summary:
            values.append(float(normalised(by_source) == normalised(by_summary)))
        else:
            values.append(token_f1(by_source, by_summary))
    return sum(values) / len(values) if values else None


@pytest.mark.parametrize("agree", ["same", "answered", "any"])
@pytest.mark.parametrize("questions", [1, 3, 20])
@pytest.mark.parametrize("similarity", ["f1", "exact"])
def test_scores_are_those_of_a_naive_loop(agree: str, questions: int, similarity: str) -> None:
    keeping = Keeping(questions, agree=agree, padding="no")  # type: ignore[arg-type]
    found = scored(examine(PAIRS, toys(), STRICT.asking, [keeping]), 0, similarity)
    expected = [naive(pair, keeping, similarity == "exact") for pair in PAIRS]
    assert [None if one.trouble else one.score for one in found] == pytest.approx(expected)
    assert [one.score for one in found if one.trouble] == [0.0, 0.0]


class PronounFinder(NameFinder):
    """Finds the word `it`, too."""

    def candidates(self, texts):  # type: ignore[no-untyped-def]
        for text in texts:
            found = next(super().candidates([text]))
            place = text.find("it")
            yield [*found, *([AnswerCandidate("it", place, place + 2, "pronoun")] if place >= 0 else [])]


def test_pronouns_are_asked_about_by_the_papers_rules_alone() -> None:
    text = "The ferry steered by Ruth was late when it left for Ellery."
    for preset, pronouns in ((PAPER, 1), (STRICT, 0)):
        parts = QagsModels(PronounFinder(), WordsBefore(), NameAfter())
        examine([Pair(SOURCE, text)], parts, preset.asking, [preset.keeping])
        asked = [text[span.start : span.end] for _, span in parts.questioner.asked]  # type: ignore[attr-defined]
        assert asked.count("it") == pronouns
        assert {"Ruth", "Ellery"} <= set(asked)


def test_a_faithful_summary_scores_above_a_wrong_one() -> None:
    found = examine(PAIRS, toys(), STRICT.asking, [STRICT.keeping, replace(STRICT.keeping, padding="no")])
    assert [one.score for one in scored(found, 1)[:2]] == [1.0, 0.25]
    # Removed questions that neither text answers agree, which draws a score towards 1.
    assert [one.score for one in scored(found, 0)[:2]] == [1.0, 0.5]


def test_troubles_are_named() -> None:
    found = examine(PAIRS, toys(), STRICT.asking, [STRICT.keeping])
    assert [one.trouble for one in found] == ["", "", "", "", NO_CANDIDATES, EMPTY, ""]
    strict = replace(STRICT.keeping, padding="no")

    class Nobody(NameAfter):
        def _answer(self, question, context):  # type: ignore[no-untyped-def]
            return super()._answer("no such words?", context)

    parts = QagsModels(NameFinder(), WordsBefore(), Nobody())
    alone = examine(PAIRS[:1], parts, STRICT.asking, [strict, STRICT.keeping])
    assert scored(alone, 0)[0] == (0.0, (), NOTHING_KEPT)
    # Filled up with questions that neither text answers: both say the same, as in SQuAD 2.0.
    assert scored(alone, 1)[0].score == 1.0
    assert set(alone[0].removed(strict)) >= {UNANSWERED, NO_MARK, NO_CHANCE}


def test_every_filter_counts_what_it_removes() -> None:
    asking = replace(STRICT.asking, answers=4)
    found = examine(PAIRS[:1], toys(), asking, [STRICT.keeping])[0]
    # Four names, each with seven questions: two alike, one without a mark, one too short, one without a number.
    counts = found.removed(STRICT.keeping)
    assert (counts[NO_MARK], counts[NO_CHANCE], counts[DUPLICATE]) == (4, 4, 4)
    assert counts["questions of fewer than 3 tokens"] == 4
    assert len(found.proposals) == 4 * 3
    assert counts[UNANSWERED] == 4
    assert counts[DIFFERENT] == 0
    assert [one.score for one in found.proposals] == sorted(
        (one.score for one in found.proposals), reverse=True
    )


def test_equal_requests_are_done_once() -> None:
    parts = toys()
    examine(PAIRS, parts, STRICT.asking, [STRICT.keeping, FAST.keeping])
    asked, answered = parts.questioner.asked, parts.answerer.answered  # type: ignore[attr-defined]
    assert len(asked) == len(set(asked)) == 8
    assert len(answered) == len(set(answered))


def test_only_what_is_kept_is_put_to_the_source() -> None:
    parts = toys()
    found = examine(PAIRS[:1], parts, STRICT.asking, [Keeping(1), Keeping(2)])[0]
    answered = parts.answerer.answered  # type: ignore[attr-defined]
    assert len([one for one in answered if one[1] == SOURCE]) == 2
    assert [len(one.places) for one in found.selections] == [1, 2]
    with pytest.raises(ValueError, match="not put to the source"):
        found.answers([len(found.proposals) - 1])


@pytest.mark.parametrize("stop_after", [0, 1])
def test_a_killed_run_goes_on_where_it_was(tmp_path, stop_after: int) -> None:
    whole = examine(PAIRS, toys(), STRICT.asking, [STRICT.keeping])
    kept = tmp_path / "steps.jsonl"
    first = toys()
    first.answerer.stop_after = stop_after  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt), Records(kept) as records:
        examine(PAIRS, first, STRICT.asking, [STRICT.keeping], records=records)
    # The kill tore the last line.
    kept.write_bytes(kept.read_bytes() + b'["half a rec')
    second = toys()
    with Records(kept) as records:
        assert examine(PAIRS, second, STRICT.asking, [STRICT.keeping], records=records) == whole
    assert second.finder.read == []  # type: ignore[attr-defined]
    assert second.questioner.asked == []  # type: ignore[attr-defined]
    third = toys()
    with Records(kept) as records:
        assert examine(PAIRS, third, STRICT.asking, [STRICT.keeping], records=records) == whole
    assert third.answerer.answered == []  # type: ignore[attr-defined]


class Slow(WordsBefore):
    """Runs on a CPU, and is stopped after so many portions."""

    device_kind = "cpu"

    def __init__(self, stop_after: int | None = None) -> None:
        super().__init__()
        self.portions: list[int] = []
        self.stop_after = stop_after

    def ask(self, contexts, answers, **search):  # type: ignore[no-untyped-def]
        if len(self.portions) == self.stop_after:
            raise KeyboardInterrupt
        self.portions.append(len(contexts))
        return super().ask(contexts, answers, **search)


def test_little_is_lost_on_a_slow_machine_and_portions_stay_the_same(tmp_path) -> None:
    kept = tmp_path / "steps.jsonl"
    first, second, whole = Slow(1), Slow(), Slow()
    expected = examine(PAIRS, QagsModels(NameFinder(), whole, NameAfter()), STRICT.asking, [STRICT.keeping])
    # Eight answers in all, ten beams each: forty rows are about half a minute of a small model on two cores.
    assert whole.portions == [4, 4]
    with pytest.raises(KeyboardInterrupt), Records(kept) as records:
        examine(
            PAIRS,
            QagsModels(NameFinder(), first, NameAfter()),
            STRICT.asking,
            [STRICT.keeping],
            records=records,
        )
    told: list[tuple[int, int]] = []
    with Records(kept) as records:
        parts = QagsModels(NameFinder(), second, NameAfter())
        found = examine(
            PAIRS,
            parts,
            STRICT.asking,
            [STRICT.keeping],
            records=records,
            progress=lambda done, total, unit: told.append((done, total)) if "asked" in unit else None,
        )
    assert found == expected
    assert second.portions == [4]
    assert told == [(4, 8), (8, 8)]
    # A GPU is given far more at once, and so is what does not say where it runs.
    second.device_kind, second.portions = "cuda", []
    examine(PAIRS, parts, STRICT.asking, [STRICT.keeping])
    assert second.portions == [8]
    greedy = Slow()
    examine(PAIRS, QagsModels(NameFinder(), greedy, NameAfter()), FAST.asking, [STRICT.keeping])
    assert greedy.portions == [8]


def test_another_model_or_another_search_is_another_question(tmp_path) -> None:
    with Records(tmp_path / "steps.jsonl") as records:
        examine(PAIRS, toys(), STRICT.asking, [STRICT.keeping], records=records)
        other = QagsModels(NameFinder(), WordsBefore("other"), NameAfter("other"))
        examine(PAIRS, other, STRICT.asking, [STRICT.keeping], records=records)
        assert other.questioner.asked  # type: ignore[attr-defined]
        assert other.answerer.answered  # type: ignore[attr-defined]
        narrow = toys()
        examine(PAIRS, narrow, FAST.asking, [STRICT.keeping], records=records)
        assert narrow.questioner.asked  # type: ignore[attr-defined]


def test_a_summary_has_the_same_questions_whatever_stands_beside_it() -> None:
    together = examine(PAIRS, toys(), FAST.asking, [FAST.keeping])
    for pair, one in zip(PAIRS, together, strict=True):
        assert examine([pair], toys(), FAST.asking, [FAST.keeping]) == [one]


def test_progress_is_told_step_by_step() -> None:
    told: list[tuple[int, int, str]] = []
    examine(
        [Pair(SOURCE, FAITHFUL), Pair(SOURCE, WRONG)],
        toys(),
        STRICT.asking,
        [STRICT.keeping],
        progress=lambda done, total, unit: told.append((done, total, unit)),
    )
    assert [unit for _, _, unit in told] == [
        "summaries read",
        "answers asked about",
        "answers by summaries",
        "answers by sources",
    ]
    assert all(done == total for done, total, _ in told)


def test_a_file_that_is_no_record_is_left_alone(tmp_path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Buy bread.\n")
    with pytest.raises(EnsueError, match="was left as it is"):
        Records(path)
    assert path.read_text() == "Buy bread.\n"
    held = tmp_path / "steps.jsonl"
    with Records(held) as records:
        records.add(STEPS, [("key", [1, 2])])
        with pytest.raises(EnsueError, match="Another process"):
            Records(held)
    with Records(held) as records:
        assert records.get(STEPS, "key") == [1, 2]


requests = st.lists(st.tuples(st.sampled_from(["a", "b", "é", '"', "\n"]), st.integers(0, 3)), max_size=30)


def outcome(request: tuple[str, int]) -> list[object]:
    return [request[0] * 2, request[1] / 3]


@given(requests, requests, st.integers(1, 7))
def test_each_distinct_request_is_done_once(first: list, second: list, chunk: int) -> None:
    done: Counter[tuple[str, int]] = Counter()

    def work(part: Sequence[tuple[str, int]]) -> list[list[object]]:
        assert len(part) <= chunk
        done.update(part)
        return [outcome(request) for request in part]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.jsonl"
        with Records(path) as records:
            assert once(records, {"step": "x"}, first, work, chunk=chunk) == [outcome(one) for one in first]
            assert set(done.values()) <= {1}
        with Records(path) as records:
            assert records.count(STEPS) == len(set(first))
            before = done.copy()
            assert once(records, {"step": "x"}, first, work, chunk=chunk) == [outcome(one) for one in first]
            assert done == before
            assert once(records, {"step": "x"}, second, work, chunk=chunk) == [outcome(one) for one in second]
            # Another question shares nothing with the first.
            once(records, {"step": "y"}, first, work, chunk=chunk)
            assert records.count(STEPS) == len(set(first) | set(second)) + len(set(first))


@given(st.integers(0, 400))
def test_a_torn_file_keeps_its_whole_lines(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.jsonl"
        with Records(path) as records:
            once(
                records,
                {},
                [(number,) for number in range(8)],
                lambda part: [list(one) for one in part],
                chunk=3,
            )
        whole = path.read_bytes()
        path.write_bytes(whole[:cut])
        with Records(path) as records:
            assert records.count(STEPS) == whole[:cut].count(b"\n")
            found = once(
                records,
                {},
                [(number,) for number in range(8)],
                lambda part: [list(one) for one in part],
                chunk=3,
            )
        assert found == [[number] for number in range(8)]
        with Records(path) as records:
            assert records.count(STEPS) == 8


def test_too_few_outcomes_are_noticed() -> None:
    with pytest.raises(ValueError, match="2 requests were given back 1"):
        once(Records(), {}, [("a",), ("b",)], lambda part: [1], chunk=5)
