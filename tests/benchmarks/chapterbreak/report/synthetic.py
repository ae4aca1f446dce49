"""Made-up ChapterBreak runs for the tests of reports."""

from __future__ import annotations

import json

import numpy as np

from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of
from tests.report.synthetic import make_results, write_run


def make_chapterbreak_items(
    *,
    splits=("pg19",),
    boundaries=("chapter",),
    negatives=("in-book",),
    prefixes=(256, 1024, 8192),
    suffixes=(128,),
    works=6,
    examples=5,
    skill=0.3,
    seed=0,
    tokens=True,
):
    """Items as a ChapterBreak run writes them; longer prefixes and easier kinds are guessed right more often."""
    generator = np.random.default_rng(seed)
    items = []
    settings = [
        (split, boundary, kind, prefix, suffix)
        for split in splits
        for boundary in boundaries
        for kind in negatives
        for suffix in suffixes
        for prefix in prefixes
    ]
    for split, boundary, kind, prefix, suffix in settings:
        chance = (
            skill + 0.02 * np.log2(max(prefix, 1)) + (boundary != "chapter") * 0.3 + (kind != "in-book") * 0.3
        )
        for number in range(works * examples):
            example = f"{split}/work {number % works}/{number // works}"
            scores = sorted(generator.normal(-3, 0.4, size=6))
            place = 5 if generator.random() < chance else int(generator.integers(0, 5))
            gold = scores.pop(place)
            outputs = {"example": example, "scores": [gold, *scores], "choice": int(gold < scores[-1])}
            if tokens:
                outputs["gold"] = {"logprob": gold * suffix, "tokens": suffix, "words": suffix / 1.3}
            margin = gold - max(scores)
            items.append(
                {
                    "id": f"{example}#{boundary}#{kind}#s{suffix}#n{prefix}",
                    "cluster": f"{split}/work {number % works}",
                    "task": split,
                    "settings": {
                        "boundary": boundary,
                        "negatives": kind,
                        "prefix_tokens": prefix,
                        "suffix_tokens": suffix,
                    },
                    "scores": {
                        "accuracy": float(margin > 0),
                        "rank": 1.0 + sum(score > gold for score in scores),
                        "margin": margin,
                        "ties": 0.0,
                    },
                    "outputs": outputs,
                }
            )
    return items


def make_chapterbreak_results(items, model="some-model", perplexity=60.0):
    groups = {}
    for item in items:
        groups.setdefault(json.dumps([item["task"], item["settings"]]), []).append(item)
    rows = []
    for chosen in groups.values():
        same = {"task": chosen[0]["task"], "settings": chosen[0]["settings"]}
        for metric in chosen[0]["scores"]:
            found = clustered_interval(
                [i["scores"][metric] for i in chosen], [i["cluster"] for i in chosen], bounds=range_of(metric)
            )
            row = {**same, "metric": metric, "value": found.value, "ci95": [found.low, found.high]}
            rows.append({**row, "n": found.n, "clusters": found.clusters})
        if "gold" in chosen[0]["outputs"]:
            for metric, value in (("word_perplexity", perplexity), ("subwords_per_word", 1.3)):
                rows.append({**same, "metric": metric, "value": value, "ci95": None, "n": len(chosen)})
    return {**make_results([]), "benchmark": "chapterbreak", "model": model, "metrics": rows, "skipped": {}}


def write_chapterbreak(folder, model="some-model", perplexity=60.0, **settings):
    items = make_chapterbreak_items(**settings)
    return write_run(folder, items, make_chapterbreak_results(items, model, perplexity))
