"""ChapterBreak against an independent implementation: plain transformers, one suffix at a time."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ensue
from ensue.backends.baselines import UnigramModel
from ensue.backends.names import load_model
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.chapterbreak.data.examples import Example, Examples
from ensue.benchmarks.chapterbreak.task import SETTINGS, TASK, ChapterBreakRun
from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError, RunFailed
from ensue.models.card import ModelCard
from ensue.models.request import Policy
from ensue.records import Records
from ensue.scoring.journal import Journal
from tests.support import tiny
from tests.support.command import here, refused
from tests.support.corpus import document

SEPARATOR = "\n\n"


def text(seed: int, sentences: int) -> str:
    """No two begin or end alike."""
    return f"{seed}: " + " ".join(document(seed, sentences)) + f" ({seed})"


def examples(
    count: int = 6, sentences: int = 12, split: str = "pg19", boundary: Any = "chapter"
) -> list[Example]:
    """Contexts of about 400 tiny-model tokens, suffixes of about 100."""
    return [
        Example(
            id=f"{split}/w{n // 2}/{n % 2}",
            split=split,
            work=f"w{n // 2}",
            boundary=boundary,
            context=text(n, sentences),
            gold=text(100 + n, 4),
            negatives=tuple(text(1000 + 10 * n + k, 4) for k in range(5)),
        )
        for n in range(count)
    ]


def run_of(
    items: list[Example], split: str | None = None, limit: int | None = None, **given: Any
) -> ChapterBreakRun:
    values = resolve("chapterbreak", SETTINGS, given)
    return ChapterBreakRun(Examples(items, "a test", "f", {}), values, 0, split, limit)


class Naive:
    """A causal model as transformers loads it, and nothing else."""

    def __init__(self, folder: Path, *, bos: bool = False) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.before = [self.tokenizer.bos_token_id] if bos else []

    def ids(self, words: str) -> list[int]:
        return list(self.tokenizer(words, add_special_tokens=False, verbose=False)["input_ids"])

    def logprobs(self, context: str, suffix: str, n: int, m: int) -> list[float]:
        prefix = self.before + self.ids(context)[-n:]
        ids = prefix + self.ids(SEPARATOR + suffix)[:m]
        with torch.no_grad():
            table = self.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        return [table[place - 1, ids[place]].item() for place in range(len(prefix), len(ids))]

    def words(self, suffix: str, m: int) -> float:
        """Words of the first m tokens, the last one by its share of characters."""
        offsets = self.tokenizer(SEPARATOR + suffix, add_special_tokens=False, return_offsets_mapping=True)
        end = offsets["offset_mapping"][:m][-1][1]
        covered = (SEPARATOR + suffix)[:end].split()
        partial = re.search(r"\S*$", (SEPARATOR + suffix)[:end]).group()  # type: ignore[union-attr]
        rest = re.match(r"\S*", (SEPARATOR + suffix)[end:]).group()  # type: ignore[union-attr]
        if not partial or not rest:
            return len(covered)
        return len(covered) - 1 + len(partial) / len(partial + rest)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "llama", max_length=512)


def check_against(naive: Naive, outcome: Any, items: Sequence[Example]) -> None:
    """Every item's numbers and verdict, and every metric row, computed again."""
    by_id = {example.id: example for example in items}
    groups: dict[str, list[tuple[dict[str, float], float, int, float]]] = {}
    for item in outcome.items:
        example, s = by_id[item["outputs"]["example"]], item["settings"]
        n, m = s["prefix_tokens"], s["suffix_tokens"]
        found = [naive.logprobs(example.context, t, n, m) for t in (example.gold, *example.negatives)]
        means = [float(np.mean(values)) for values in found]
        assert item["outputs"]["scores"] == pytest.approx(means, abs=1e-4)
        assert means[item["outputs"]["choice"]] == pytest.approx(max(means), abs=1e-6)
        assert item["outputs"]["context_tokens"] == min(n, len(naive.ids(example.context)))
        gold = item["outputs"]["gold"]
        words = naive.words(example.gold, m)
        assert gold["logprob"] == pytest.approx(sum(found[0]), abs=1e-2)
        assert (gold["tokens"], gold["words"]) == (len(found[0]), pytest.approx(words))
        best = max(means[1:])
        assert item["scores"]["accuracy"] == float(means[0] > best + 1e-6)
        assert item["scores"]["rank"] == 1 + sum(x >= means[0] - 1e-6 for x in means[1:])
        assert item["scores"]["margin"] == pytest.approx(means[0] - best, abs=2e-4)
        assert item["scores"]["ties"] == float(abs(means[0] - best) <= 1e-6)
        assert (item["cluster"], item["task"]) == (f"{example.split}/{example.work}", example.split)
        groups.setdefault(json.dumps([item["task"], s]), []).append(
            (item["scores"], sum(found[0]), len(found[0]), words)
        )
    rows = {(json.dumps([r["task"], r["settings"]]), r["metric"]): r for r in outcome.metrics}
    assert len(rows) == len(outcome.metrics) == 6 * len(groups)
    for key, golds in groups.items():
        for metric in ("accuracy", "rank", "margin", "ties"):
            assert rows[key, metric]["value"] == pytest.approx(np.mean([s[metric] for s, *_ in golds]))
        nats, tokens, words = (sum(g[i] for g in golds) for i in (1, 2, 3))
        # Appendix E: the mean per subword times subwords per word.
        perplexity = math.exp(-nats / tokens * (tokens / words))
        assert rows[key, "word_perplexity"]["value"] == pytest.approx(perplexity, rel=1e-3)
        assert rows[key, "subwords_per_word"]["value"] == pytest.approx(tokens / words)
        low, high = rows[key, "word_perplexity"]["ci95"]
        assert low <= rows[key, "word_perplexity"]["value"] <= high


@pytest.mark.parametrize("bos", [False, True])
def test_every_number_is_that_of_a_plain_loop(tmp_path: Path, bos: bool) -> None:
    saved = tiny.save_llama(tmp_path / "llama", bos=bos, max_length=512)
    items = examples(4)
    outcome = run_of(items, prefix_tokens=[16, 64, 200], suffix_tokens=48).evaluate(
        load_model(str(saved)), RunContext()
    )
    assert len(outcome.items) == 4 * 3
    assert [item["id"] for item in outcome.items][:3] == ["pg19/w0/0#n16", "pg19/w0/0#n64", "pg19/w0/0#n200"]
    check_against(Naive(saved, bos=bos), outcome, items)
    assert "boundary:apart" in outcome.signature
    assert "joint" not in outcome.signature
    assert outcome.signature.endswith(r"separator:'\n\n' ties:1e-6 seed:0")


def test_shorter_suffixes_are_read_off_the_same_pass(folder: Path) -> None:
    items = examples(3)
    both = run_of(items, prefix_tokens=[32, 100], suffix_tokens=[40, 8, 24])
    outcome = both.evaluate(load_model(str(folder)), RunContext())
    check_against(Naive(folder), outcome, items)
    assert {item["id"] for item in outcome.items if item["id"].startswith("pg19/w0/0#n32")} == {
        f"pg19/w0/0#n32#s{m}" for m in (8, 24, 40)
    }
    # The scored tokens are those of the longest suffixes alone: nothing is scored twice.
    assert outcome.tokens == 3 * 2 * 6 * 40


def test_the_ladder_ends_with_the_longest_prefix_that_fits(folder: Path) -> None:
    outcome = run_of(examples(2, sentences=20), prefix_tokens=[64, 128, 512, 1024, 4096]).evaluate(
        load_model(str(folder)), RunContext()
    )
    assert [row["settings"]["prefix_tokens"] for row in outcome.metrics[::6]] == [64, 128, 384]
    (note,) = [key for key in outcome.notes if key.startswith("prefix lengths above 384")]
    assert outcome.notes[note] == 3
    shorter = run_of(examples(2, sentences=20), prefix_tokens=[64, 512], max_length=200).evaluate(
        load_model(str(folder)), RunContext()
    )
    assert [row["settings"]["prefix_tokens"] for row in shorter.metrics[::6]] == [64, 72]


def test_a_bos_takes_a_place_in_the_ladder(tmp_path: Path) -> None:
    saved = tiny.save_llama(tmp_path / "llama", bos=True, max_length=512)
    outcome = run_of(examples(2, sentences=20), prefix_tokens=[1024]).evaluate(
        load_model(str(saved)), RunContext()
    )
    assert outcome.metrics[0]["settings"]["prefix_tokens"] == 383


def test_short_contexts_and_suffixes_are_used_whole_and_counted(folder: Path) -> None:
    items = examples(4)
    items[0] = Example("pg19/w0/0", "pg19", "w0", "chapter", "A short one.", "Tiny end.", items[0].negatives)
    naive = Naive(folder)
    asked = {"prefix_tokens": [8, 32, 64], "suffix_tokens": 40}
    outcome = run_of(items, **asked).evaluate(load_model(str(folder)), RunContext())
    check_against(naive, outcome, items)
    have = len(naive.ids("A short one."))
    assert 8 <= have < 32
    assert outcome.notes["contexts shorter than 32 tokens"] == 1
    assert outcome.notes["contexts shorter than 64 tokens"] == 1
    assert "contexts shorter than 8 tokens" not in outcome.notes
    assert outcome.notes["suffixes shorter than 40 tokens"] == 1
    first = [item["outputs"] for item in outcome.items if item["outputs"]["example"] == "pg19/w0/0"]
    assert first[1]["scores"] == first[2]["scores"]


def test_a_model_without_room_for_a_prefix_is_refused(tmp_path: Path) -> None:
    saved = tiny.save_llama(tmp_path / "small", max_length=128)
    with pytest.raises(
        EnsueError, match=r"small takes 128 tokens, which leaves no prefix before suffixes of 128"
    ):
        run_of(examples(1)).evaluate(load_model(str(saved)), RunContext())


def test_masked_models_rank_by_pseudo_log_likelihood(tmp_path: Path) -> None:
    saved = tiny.save_bert(tmp_path / "bert", max_length=64)
    model: Any = load_model(str(saved))
    items = examples(2)
    outcome = run_of(items, prefix_tokens=[16, 128], suffix_tokens=6).evaluate(model, RunContext())
    assert [row["settings"]["prefix_tokens"] for row in outcome.metrics[::6]] == [16, 56]
    tokenizer = model.tokenizer
    for item in outcome.items:
        example = next(e for e in items if e.id == item["outputs"]["example"])
        means = []
        for suffix in (example.gold, *example.negatives):
            prefix, after = (
                tokenizer(t, add_special_tokens=False)["input_ids"]
                for t in (example.context, SEPARATOR + suffix)
            )
            prefix, after = prefix[-item["settings"]["prefix_tokens"] :], after[:6]
            ids = [tokenizer.cls_token_id, *prefix, *after, tokenizer.sep_token_id]
            total = 0.0
            for place in range(1 + len(prefix), len(ids) - 1):
                masked = [*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]
                with torch.no_grad():
                    table = model.network(torch.tensor([masked])).logits[0, place].double().log_softmax(-1)
                total += table[ids[place]].item()
            means.append(total / len(after))
        assert item["outputs"]["scores"] == pytest.approx(means, abs=1e-4)


class Segments:
    """A segment-level model: likes suffixes that share letters with the end of the context."""

    max_prefix_tokens = 1000
    card = ModelCard(name="segments", kind="test", source="a test", identity={"seed": "0"})

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def score_suffixes(
        self, context: str, suffixes: Sequence[str], *, prefix_tokens: Sequence[int], suffix_tokens: int
    ) -> list[list[float]]:
        self.asked.append((context, tuple(suffixes), tuple(prefix_tokens), suffix_tokens))
        return [[self.one(context, suffix, n, suffix_tokens) for suffix in suffixes] for n in prefix_tokens]

    def one(self, context: str, suffix: str, n: int, m: int) -> float:
        return random.Random(f"{context.split()[-n:]}{suffix.split()[:m]}").random()


def test_a_segment_level_model_is_asked_for_whole_suffixes() -> None:
    model, items = Segments(), examples(5)
    outcome = run_of(items, prefix_tokens=[4, 16, 1024, 8192], suffix_tokens=[8, 16]).evaluate(
        model, RunContext()
    )
    assert len(model.asked) == 5 * 2
    context, suffixes, prefixes, length = model.asked[0]
    assert (context, suffixes) == (items[0].context, (items[0].gold, *items[0].negatives))
    assert (prefixes, length) == ((4, 16, 1000), 8)
    assert len(outcome.items) == 5 * 2 * 3
    for item in outcome.items:
        example = next(e for e in items if e.id == item["outputs"]["example"])
        s = item["settings"]
        expected = [
            model.one(example.context, t, s["prefix_tokens"], s["suffix_tokens"])
            for t in (example.gold, *example.negatives)
        ]
        assert item["outputs"]["scores"] == expected
        assert item["scores"]["accuracy"] == float(expected[0] == max(expected))
        assert "gold" not in item["outputs"]
    assert {row["metric"] for row in outcome.metrics} == {"accuracy", "rank", "margin", "ties"}
    assert "suffixes:segments" in outcome.signature


class Killed(Segments):
    """The same, stopped after so many answers."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self.answers = answers

    def score_suffixes(self, *given: Any, **more: Any) -> list[list[float]]:
        if len(self.asked) == self.answers:
            raise KeyboardInterrupt
        return super().score_suffixes(*given, **more)


def test_a_killed_run_of_a_segment_level_model_goes_on_where_it_was(tmp_path: Path) -> None:
    items, path = examples(5), tmp_path / "journal.jsonl"
    run = run_of(items, prefix_tokens=[4, 16], suffix_tokens=[8, 16])
    whole = run.evaluate(Segments(), RunContext())
    with pytest.raises(KeyboardInterrupt), Records(path) as records:
        run.evaluate(Killed(7), RunContext(records=records))
    rest = Segments()
    with Records(path) as records:
        assert run.evaluate(rest, RunContext(records=records)) == whole
    assert [(context, length) for context, _, _, length in rest.asked] == [
        (items[3].context, 16),
        (items[4].context, 8),
        (items[4].context, 16),
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_segment_level_score_that_is_no_number_is_refused_and_not_kept(value: float) -> None:
    class Overflowing(Segments):
        def one(self, context: str, suffix: str, n: int, m: int) -> float:
            return value if suffix == items[1].negatives[2] else super().one(context, suffix, n, m)

    items, records = examples(3), Records()
    with pytest.raises(RunFailed, match=re.escape(f"makes {value} of the text that begins")):
        run_of(items, prefix_tokens=[4], suffix_tokens=[8]).evaluate(
            Overflowing(), RunContext(records=records)
        )
    assert len(records) == 1


@pytest.mark.parametrize("change", [{"prefix_tokens": [8]}, {"suffix_tokens": [4]}, {"identity": "1"}])
def test_kept_scores_of_suffixes_answer_their_own_question_only(change: dict[str, Any]) -> None:
    items, records = examples(2), Records()
    asked = {"prefix_tokens": [4], "suffix_tokens": [8]}
    run_of(items, **asked).evaluate(Segments(), RunContext(records=records))
    model = Segments()
    if "identity" in change:
        model.card = replace(Segments.card, identity={"seed": change["identity"]})
    else:
        asked |= change
    run_of(items, **asked).evaluate(model, RunContext(records=records))
    assert len(model.asked) == 2


def test_other_works_give_other_negatives_after_the_same_prefix(folder: Path) -> None:
    items = examples(12, split="pg19") + examples(12, split="ao3")
    kinds = ["in-book", "same-split", "other-split"]
    run = run_of(items, split="ao3", limit=2, negatives=kinds, prefix_tokens=[32], suffix_tokens=16)
    outcome = run.evaluate(load_model(str(folder)), RunContext())
    assert [item["id"] for item in outcome.items] == [
        f"ao3/w0/{n}#n32{suffix}" for n in (0, 1) for suffix in ("", "#same-split", "#other-split")
    ]
    golds = [item["outputs"]["scores"][0] for item in outcome.items]
    assert golds[0] == golds[1] == golds[2]
    assert len({tuple(item["outputs"]["scores"]) for item in outcome.items}) == 6
    assert [row["settings"]["negatives"] for row in outcome.metrics[::6]] == kinds
    every = run_of(items, split="ao3", negatives=kinds, prefix_tokens=[32], suffix_tokens=16)
    again = every.evaluate(load_model(str(folder)), RunContext()).items
    assert [i["outputs"]["choice"] for i in again][:6] == [i["outputs"]["choice"] for i in outcome.items]


def test_boundaries_have_rows_of_their_own_and_can_be_chosen(folder: Path) -> None:
    items = examples(3) + [
        Example(f"cause:{e.id}", e.split, e.work, "cause", e.context, e.gold, e.negatives)
        for e in examples(2)
    ]
    model = load_model(str(folder))
    outcome = run_of(items, prefix_tokens=[16], suffix_tokens=8).evaluate(model, RunContext())
    assert [(row["settings"]["boundary"], row["n"]) for row in outcome.metrics[::6]] == [
        ("chapter", 3),
        ("cause", 2),
    ]
    only = run_of(items, prefix_tokens=[16], suffix_tokens=8, boundary="cause").evaluate(model, RunContext())
    assert {item["settings"]["boundary"] for item in only.items} == {"cause"}
    with pytest.raises(EnsueError, match="no dialogue boundaries; it has chapter, cause"):
        run_of(items, boundary="dialogue").evaluate(model, RunContext())


def test_an_interrupted_run_goes_on_where_it_was(folder: Path, tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(done: int, total: int, unit: str) -> None:
        assert (total, unit) == (20, "examples")
        if done >= 17:
            raise Stopped

    run, model = run_of(examples(20), prefix_tokens=[16, 64], suffix_tokens=24), load_model(str(folder))
    with Journal(tmp_path / "j") as journal, pytest.raises(Stopped):
        run.evaluate(model, RunContext(journal, progress=stop))
    kept = len((tmp_path / "j").read_text().splitlines())
    assert kept >= 16 * 2 * 6
    with Journal(tmp_path / "j") as journal:
        resumed = run.evaluate(model, RunContext(journal))
    assert len((tmp_path / "j").read_text().splitlines()) == 20 * 2 * 6
    assert resumed.items == run.evaluate(model, RunContext()).items


def test_chance_is_one_in_six(folder: Path) -> None:
    outcome = run_of(examples(300, sentences=2), prefix_tokens=[64]).evaluate(
        load_model("random"), RunContext()
    )
    accuracy, rank = outcome.metrics[0], outcome.metrics[1]
    assert (accuracy["n"], accuracy["clusters"]) == (300, 150)
    assert accuracy["value"] == pytest.approx(1 / 6, abs=0.09)
    assert rank["value"] == pytest.approx(3.5, abs=0.4)


def write_data(path: Path, items: Sequence[Example]) -> Path:
    """The published format: split, work, a list of examples."""
    data: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for e in items:
        row = {"ctx": e.context, "pos": e.gold, "negs": list(e.negatives)}
        data.setdefault(e.split, {}).setdefault(e.work, []).append(row)
    path.write_text(json.dumps(data))
    return path


def test_the_command_runs_one_split_or_all(folder: Path, tmp_path: Path) -> None:
    data = write_data(tmp_path / "cb.json", examples(5) + examples(4, split="ao3"))
    how: dict[str, Any] = {"model": str(folder), "data": data, "prefix_tokens": [16, 64], "suffix_tokens": 24}
    every = ensue.run("chapterbreak", output=tmp_path / "every", limit=3, **how)
    assert [(r["task"], r["n"], r["clusters"]) for r in every.results["metrics"][::6]] == [
        ("pg19", 3, 2),
        ("pg19", 3, 2),
        ("ao3", 3, 2),
        ("ao3", 3, 2),
    ]
    one = ensue.run("chapterbreak/ao3", output=tmp_path / "one", **how)
    assert {item["task"] for item in one.items} == {"ao3"}
    shown = here("run", "chapterbreak/ao3", "--model", folder, "--data", data, "--output", tmp_path / "two")
    assert shown.code == 0, shown.err
    assert "ao3" in shown.out


def test_bad_input_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    data = write_data(tmp_path / "cb.json", examples(2))
    small = tiny.save_llama(tmp_path / "small", max_length=64)
    start = ("--output", tmp_path / "run", "--model")
    refused(here("run", "chapterbreak", *start, folder), "needs --data", "ensue build chapterbreak")
    refused(here("run", "chapterbreak/x", *start, folder, "--data", data), "no split 'x'", "pg19")
    refused(
        here("run", "chapterbreak", *start, small, "--data", data), "leaves no prefix before suffixes of 128"
    )
    encoder = tiny.save_encoder(tmp_path / "encoder")
    refused(
        here("run", "chapterbreak", *start, encoder, "--data", data),
        "ChapterBreak needs a model that can score",
    )
    wrong = here("run", "chapterbreak", *start, folder, "--data", data, "--set", "negatives=far")
    refused(wrong, "Invalid negatives=far")


def test_what_lacks_negatives_of_a_kind_is_counted_with_what_was_left_out_before() -> None:
    """One work alone has no others to draw from, and its examples are asked with their own negatives."""
    items = examples(2)
    run = run_of(items, negatives=["in-book", "same-split"], prefix_tokens=[4], suffix_tokens=8)
    reason = "examples without enough same-split negatives"
    before = replace(run, data=Examples(items, "a test", "f", {reason: 3, "other": 1}))
    outcome = before.evaluate(Segments(), RunContext())
    assert outcome.skipped == {reason: 5, "other": 1}
    assert [item["settings"]["negatives"] for item in outcome.items] == ["in-book"] * 2
    with pytest.raises(EnsueError, match="No example of a test could be scored"):
        run_of(items, negatives=["same-split"], prefix_tokens=[4]).evaluate(Segments(), RunContext())


def test_notes_of_the_data_and_of_the_ranking_are_added_up() -> None:
    items = examples(2)
    run = run_of(items, prefix_tokens=[4, 2000, 3000], suffix_tokens=8)
    cut = "prefix lengths above 1000 tokens, which do not fit and were cut to that"
    noted = replace(run, data=Examples(items, "a test", "f", {}, {"headings": 2, cut: 1}))
    assert noted.evaluate(Segments(), RunContext()).notes == {"headings": 2, cut: 3}


@pytest.mark.parametrize(
    ("split", "limit", "chosen"),
    [
        (None, None, ["pg19/w0/0", "pg19/w0/1", "pg19/w1/0", "ao3/w0/0", "ao3/w0/1"]),
        (None, 1, ["pg19/w0/0", "ao3/w0/0"]),
        (None, 2, ["pg19/w0/0", "pg19/w0/1", "ao3/w0/0", "ao3/w0/1"]),
        ("ao3", None, ["ao3/w0/0", "ao3/w0/1"]),
        ("ao3", 1, ["ao3/w0/0"]),
    ],
)
def test_a_limit_is_for_each_split(split: str | None, limit: int | None, chosen: list[str]) -> None:
    items = examples(3) + examples(2, split="ao3")
    outcome = run_of(items, split, limit, prefix_tokens=[4], suffix_tokens=8).evaluate(
        Segments(), RunContext()
    )
    assert [item["outputs"]["example"] for item in outcome.items] == chosen


def test_a_limit_is_for_each_boundary_too() -> None:
    items = examples(3) + [replace(one, id=f"cause/{one.id}", boundary="cause") for one in examples(3)]
    outcome = run_of(items, limit=2, prefix_tokens=[4], suffix_tokens=8).evaluate(Segments(), RunContext())
    assert [item["settings"]["boundary"] for item in outcome.items] == ["chapter"] * 2 + ["cause"] * 2


@pytest.mark.parametrize(
    ("negatives", "read"),
    [
        (["in-book"], ("ao3", 1)),
        (["same-split"], ("ao3", None)),
        (["in-book", "other-split"], (None, None)),
    ],
)
def test_as_much_is_read_as_negatives_are_drawn_from(
    tmp_path: Path, negatives: list[str], read: tuple[str | None, int | None]
) -> None:
    data = write_data(tmp_path / "cb.json", examples(4) + examples(4, split="ao3"))
    settings = resolve("chapterbreak", SETTINGS, {"negatives": negatives})
    found: Any = TASK.prepare("ao3", str(data), 1, 7, settings)
    assert (found.split, found.limit, found.seed, found.settings) == ("ao3", 1, 7, settings)
    assert {e.split for e in found.data.items} == ({"ao3"} if read[0] else {"pg19", "ao3"})
    assert sum(e.split == "ao3" for e in found.data.items) == (read[1] or 4)
    assert (found.fingerprint, found.source) == (found.data.fingerprint, found.data.source)
    every: Any = TASK.prepare("", str(data), None, 0, settings)
    assert (every.split, len(every.data.items)) == (None, 8)


def test_settings_become_the_policy() -> None:
    class Scores:
        card = ModelCard(name="scores", kind="test", source="-")

        def check(self, policy: Policy) -> None:
            raise RuntimeError(policy)

        def prepare(self, *given: Any) -> Any: ...

        def execute(self, *given: Any) -> Any: ...

        def policy_signature(self, policy: Policy) -> str: ...

    given = {"bos": "never", "max_length": 77, "masked": "within-word"}
    with pytest.raises(RuntimeError) as raised:
        run_of(examples(1), **given).evaluate(Scores(), RunContext())
    assert raised.value.args == (Policy(window="refuse", bos="never", max_length=77, masked="within-word"),)


def test_an_example_with_a_suffix_of_which_nothing_is_scored_is_left_out_and_counted() -> None:
    items = examples(3)
    items[1] = replace(items[1], negatives=(*items[1].negatives[:4], " "))
    model = UnigramModel([items[0].context], "test")
    outcome = run_of(items, prefix_tokens=[4], suffix_tokens=8).evaluate(model, RunContext())
    assert outcome.skipped == {"examples with a suffix of which no token is scored": 1}
    assert [item["outputs"]["example"] for item in outcome.items] == ["pg19/w0/0", "pg19/w1/0"]


@pytest.mark.parametrize(("kind", "goes"), [("cpu", 3), ("cuda", 1)])
def test_a_gpu_is_given_many_examples_in_one_go_and_the_scores_are_the_same(kind: str, goes: int) -> None:
    items = examples(40)

    class Somewhere(UnigramModel):
        device_kind = kind
        given = 0

        def prepare(self, *given: Any) -> Any:
            self.given += 1
            return super().prepare(*given)

    asked = {"prefix_tokens": [4], "suffix_tokens": 8}
    model, plain = (make([items[0].context], "test") for make in (Somewhere, UnigramModel))
    found = run_of(items, **asked).evaluate(model, RunContext())
    assert model.given == goes
    assert found.items == run_of(items, **asked).evaluate(plain, RunContext()).items
