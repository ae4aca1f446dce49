"""All that a Shuffle Test hands back, worked out again for a model that counts letters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.benchmarks.base import RunContext, content_of
from ensue.benchmarks.settings import resolve
from ensue.benchmarks.shuffle.judging import METRICS, metric_rows, scores_of
from ensue.benchmarks.shuffle.permute import document_seed, shuffled_orders
from ensue.benchmarks.shuffle.task import SETTINGS, TASK, ShuffleRun
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.request import Part, PartScore, Policy, Prepared, Request, TextPart
from ensue.scoring.journal import Journal
from ensue.stats.clustered import clustered_interval
from ensue.text.documents import Document, Documents
from tests.support.command import write_lines

LETTERS = re.compile(r"\S")


class Letters:
    """Every letter costs a nat and every capital two, unless a text begins with one; each is a token."""

    card = ModelCard(name="letters", kind="test", source="-", identity={"weights": "abcdef0123456789"})

    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []
        self.policies: list[Policy] = []

    def check(self, policy: Policy) -> None:
        self.policies.append(policy)

    def prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        self.asked += [(request.continuation, request.detail) for request in requests]
        return [
            Prepared((TextPart(request.continuation, 0),), notes=Counter({"texts": 1}))
            for request in requests
        ]

    def values(self, text: str) -> list[float]:
        return [
            -2.0 if letter.isupper() and place else -1.0
            for place, letter in enumerate(text)
            if letter.strip()
        ]

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        for place, part in enumerate(parts):
            assert isinstance(part, TextPart)
            spans = tuple(found.span() for found in LETTERS.finditer(part.text))
            yield [(place, PartScore(np.asarray(self.values(part.text)), spans))]

    def policy_signature(self, policy: Policy) -> str:
        return f"window:{policy.window}"


FIRST = Document("a", ("Oh no.", "it rained.", "We hid.", "all night long."), "news")
SECOND = Document("b", ("b c.", "So it.", "Do."), "tales")
ALIKE = Document("c", ("No.", "No."), "news")
SHORT = Document("d", ("One.",), "tales")


def run_of(*documents: Document, seed: int = 3, **given: Any) -> ShuffleRun:
    skipped = {"documents without text": 2}
    return ShuffleRun(Documents(documents, "f", skipped, "a test"), seed, resolve("shuffle", SETTINGS, given))


def numbers(values: list[float]) -> dict[str, float]:
    return {"logprob": sum(values), "tokens": len(values), "logprob_per_token": sum(values) / len(values)}


def surprisal(sentences: Sequence[str], values: list[float]) -> tuple[list[float], list[int]]:
    """The mean of each sentence's letters, which lie one after the other."""
    left, means, counts = list(values), [], []
    for sentence in sentences:
        count = len(LETTERS.findall(sentence))
        own, left = left[:count], left[count:]
        means.append(round(-sum(own) / count, 4))
        counts.append(count)
    return means, counts


@pytest.mark.parametrize("joiner", [" ", "\n\n"])
def test_everything_handed_back_by_value(joiner: str) -> None:
    model, seen = Letters(), []  # type: ignore[var-annotated]
    run = run_of(FIRST, SECOND, ALIKE, SHORT, block_size=[2, 1], shuffles=4, max_sentences=3, joiner=joiner)
    found = run.evaluate(model, RunContext(progress=lambda *state: seen.append(state)))
    cut = replace(FIRST, sentences=FIRST.sentences[:3])
    items, originals = [], {}
    for size in (2, 1):
        for document in (cut, SECOND):
            sentences = document.sentences
            originals[document.id] = model.values(joiner.join(sentences))
            orders = shuffled_orders(sentences, size, 4, document_seed(3, document.id, size), joiner)
            assert len(orders) == (1 if size == 2 else 4)
            for number, order in enumerate(orders):
                blocks = [sentences[i : i + size] for i in range(0, 3, size)]
                mixed = model.values(joiner.join(s for block in order for s in blocks[block]))
                gap = sum(originals[document.id]) - sum(mixed)
                items.append(
                    {
                        "id": f"{document.id}#k{size}#{number}",
                        "cluster": document.id,
                        "task": "shuffle",
                        "settings": {"block_size": size},
                        # As many letters either way, so totals and means say the same.
                        "scores": {
                            "accuracy": float(gap > 0),
                            "accuracy_per_token": float(gap > 0),
                            "ties": float(gap == 0),
                            "ties_per_token": float(gap == 0),
                        },
                        "outputs": {
                            "domain": document.domain,
                            "order": list(order),
                            "original": numbers(originals[document.id]),
                            "shuffled": numbers(mixed),
                        },
                        "content": content_of(document.sentences),
                        "asked": content_of(document.sentences, size, order),
                    }
                )
    assert list(found.items) == items
    assert {item["scores"]["accuracy"] for item in items} == {0.0, 1.0}
    assert {item["scores"]["ties"] for item in items} == {0.0, 1.0}
    rows = []
    for task, domains in (
        ("shuffle", {"news", "tales"}),
        ("shuffle/news", {"news"}),
        ("shuffle/tales", {"tales"}),
    ):
        for size in (1, 2):
            chosen = [
                item
                for item in items
                if item["settings"]["block_size"] == size and item["outputs"]["domain"] in domains
            ]
            for metric in METRICS:
                values = [item["scores"][metric] for item in chosen]
                figure = clustered_interval(values, [item["cluster"] for item in chosen], bounds=(0.0, 1.0))
                rows.append(
                    {
                        "task": task,
                        "metric": metric,
                        "value": pytest.approx(sum(values) / len(values)),
                        "ci95": list(figure[1:3]),
                        "n": len(values),
                        "clusters": len({item["cluster"] for item in chosen}),
                        "settings": {"block_size": size},
                    }
                )
    assert [row for row in found.metrics if row["metric"] in METRICS] == rows
    said = joiner.encode("unicode_escape").decode()
    assert found.signature == (
        f"model:letters weights:abcdef012345 window:average shuffles:4 sentences:3 joiner:'{said}' "
        "ties:1e-4 seed:3"
    )
    assert found.skipped == {
        "documents without text": 2,
        "too short for block size 2": 2,
        "too short for block size 1": 1,
        "all orders read alike at block size 1": 1,
    }
    assert found.notes == {"documents cut to 3 sentences": 1, "texts": 12}
    assert seen[-1][0] == seen[-1][1] > 0
    assert found.tokens == sum(len(originals[name]) * (1 + 5) for name in "ab")
    # The originals and the first shuffled version of each are asked for in detail.
    assert [detail for _, detail in model.asked] == ([True] * 2 + [False] * 4) * 2
    profiles = []
    for document in (cut, SECOND):
        own = [item for item in items if item["cluster"] == document.id]
        order = [i for block in own[0]["outputs"]["order"] for i in ([0, 1], [2])[block]]
        mixed_sentences = [document.sentences[i] for i in order]
        versions = []
        for name, sentences, places in (
            ("original", list(document.sentences), [0, 1, 2]),
            ("shuffled (block size 2)", mixed_sentences, order),
        ):
            means, counts = surprisal(sentences, model.values(joiner.join(sentences)))
            versions.append(
                {
                    "name": name,
                    "order": places,
                    "sentences": sentences,
                    "surprisal": means,
                    "tokens": counts,
                }
            )
        accuracy = {
            str(size): float(
                np.mean([i["scores"]["accuracy"] for i in own if i["settings"]["block_size"] == size])
            )
            for size in (2, 1)
        }
        profiles.append(
            {"document": document.id, "domain": document.domain, "accuracy": accuracy, "versions": versions}
        )
    assert found.extras == {"profiles": profiles}


def test_pairs_judged_by_totals_alone_have_no_rows_of_means() -> None:
    assert scores_of("good", None) == {"accuracy": 1.0, "ties": 0.0}
    assert scores_of("same", None) == {"accuracy": 0.0, "ties": 1.0}
    assert list(scores_of("bad", "same").items()) == [
        ("accuracy", 0.0),
        ("accuracy_per_token", 0.0),
        ("ties", 0.0),
        ("ties_per_token", 1.0),
    ]
    found = run_of(FIRST, SECOND, block_size=[1]).evaluate(Letters(), RunContext())
    items = [{**item, "scores": scores_of("good", None)} for item in found.items]
    assert {row["metric"] for row in metric_rows(items)} == {  # type: ignore[arg-type]
        "accuracy",
        "accuracy_by_document",
        "accuracy_authors",
        "ties",
    }


def test_documents_count_alike_and_those_of_a_single_block_as_wrong_where_the_authors_count() -> None:
    """At block size 2, `a` and `b` have two blocks, `d` one; `c` reads the same in every order of its sentences."""
    model = Letters()
    found = run_of(FIRST, SECOND, ALIKE, SHORT, block_size=[1, 2], shuffles=4).evaluate(model, RunContext())
    rows = {
        (row["task"], row["metric"], row["settings"]["block_size"]): row
        for row in found.metrics
        if row["metric"].endswith(("_by_document", "_authors"))
    }
    for size in (1, 2):
        for metric in ("accuracy", "accuracy_per_token"):
            means = {
                name: float(
                    np.mean(
                        [
                            item["scores"][metric]
                            for item in found.items
                            if (item["cluster"], item["settings"]["block_size"]) == (name, size)
                        ]
                    )
                )
                for name in "ab"
            }
            alike = rows["shuffle", f"{metric}_by_document", size]
            assert (alike["value"], alike["n"]) == (pytest.approx(sum(means.values()) / 2), 2)
            authors = rows["shuffle", f"{metric}_authors", size]
            assert (authors["value"], authors["n"]) == (pytest.approx(sum(means.values()) / 4), 4)
            # `d` is a tale, as `b` is.
            tales = rows["shuffle/tales", f"{metric}_authors", size]
            assert (tales["value"], tales["n"]) == (pytest.approx(means["b"] / 2), 2)
    assert {item["cluster"] for item in found.items} == {"a", "b"}


def test_one_domain_has_no_rows_of_its_own() -> None:
    found = run_of(FIRST, replace(SECOND, domain="news"), block_size=[1]).evaluate(Letters(), RunContext())
    assert {row["task"] for row in found.metrics} == {"shuffle"}


def test_settings_become_the_policy_and_what_is_known_is_taken_from_the_journal(tmp_path: Path) -> None:
    given = {"window": "strided", "bos": "never", "max_length": 77, "masked": "within-word"}
    model = Letters()
    with Journal(tmp_path / "j") as journal:
        run_of(FIRST, **given).evaluate(model, RunContext(journal))
        assert len(journal) > 20
    assert set(model.policies) == {Policy(window="strided", bos="never", max_length=77, masked="within-word")}


def test_a_document_is_cut_only_where_it_is_longer() -> None:
    for limit, cut in ((4, 0), (3, 1), (None, 0)):
        found = run_of(FIRST, SECOND, block_size=[1], shuffles=1, max_sentences=limit).evaluate(
            Letters(), RunContext()
        )
        assert found.notes == {"texts": 4} | ({f"documents cut to {limit} sentences": 1} if cut else {})
        assert f"sentences:{limit} " in found.signature


def test_a_model_trained_on_shuffled_text_is_refused_unless_it_is_allowed() -> None:
    model = Letters()
    model.card = replace(Letters.card, trained_on_shuffled_text=True)
    with pytest.raises(EnsueError, match="letters was trained on shuffled text"):
        run_of(FIRST).evaluate(model, RunContext())
    found = run_of(FIRST, allow_shuffle_trained="yes").evaluate(model, RunContext())
    assert found.signature.endswith("ties:1e-4 seed:3 zero-shot:unchecked")


def test_nothing_to_shuffle_is_refused_with_the_source() -> None:
    with pytest.raises(EnsueError, match="No document of a test is long enough to shuffle"):
        run_of(ALIKE, SHORT).evaluate(Letters(), RunContext())


def test_documents_are_read_as_the_settings_say(tmp_path: Path) -> None:
    rows = [{"id": n, "words": f"Ein Satz, z. B. Nr. {n}. Noch einer.\nUnd eine Zeile."} for n in range(3)]
    data = write_lines(tmp_path / "rows.jsonl", rows)

    def prepared(limit: int | None = None, **given: Any) -> Any:
        settings = resolve("shuffle", SETTINGS, {"text_column": "words", **given})
        return TASK.prepare("", str(data), limit, 5, settings)

    lines = prepared(split="lines", limit=2)
    assert [document.sentences[-1] for document in lines.documents] == ["Und eine Zeile."] * 2
    assert (len(lines.documents.items[0].sentences), lines.seed) == (2, 5)
    german = prepared(language="de")
    assert german.documents.items[0].sentences[0] == "Ein Satz, z. B. Nr. 0."
    assert len(german.documents) == 3
    assert (german.fingerprint, german.source) == (german.documents.fingerprint, german.documents.source)
    latin = tmp_path / "latin.txt"
    latin.write_bytes("Das Café. Es war zu.".encode("latin-1"))
    settings = resolve("shuffle", SETTINGS, {"encoding": "latin-1"})
    found = TASK.prepare("", str(latin), None, 0, settings)
    assert found.documents.items[0].sentences == ("Das Café.", "Es war zu.")  # type: ignore[attr-defined]
    bundled = TASK.prepare("", None, 2, 0, resolve("shuffle", SETTINGS, {}))
    assert bundled.source == "bundled"
    assert len(bundled.documents) == 2  # type: ignore[attr-defined]
    with pytest.raises(EnsueError, match="no shuffle/news"):
        TASK.prepare("news", None, None, 0, {})
