"""Metrics of summaries against several references: one value a reference, then the best, the mean, and the best of
all but one.

A system is judged by its best reference (§5.5.3). People are judged by the best of the others', one fewer: the last
figure measures a system in the same way, so that it can be held against the human row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ensue.benchmarks.summaries.bertscore import bertscore_of
from ensue.errors import EnsueError
from ensue.fetch.catalog import catalog
from ensue.fetch.store import pull
from ensue.metrics.meteor import meteor_of
from ensue.metrics.overlap import rouge_of
from ensue.models.protocols import TokenEncoder
from ensue.text.wordnet import VARIABLE, WordNet, find_wordnet, load_wordnet

# From candidates and each one's references to metrics by name, each with one value a reference.
Measure = Callable[[Sequence[str], Sequence[Sequence[str]]], Mapping[str, Sequence[Sequence[float]]]]

MEAN, LEFT_OUT = "_mean", "_loo"


def scores_of(
    candidates: Sequence[str], references: Sequence[Sequence[str]], measures: Sequence[Measure]
) -> dict[str, list[list[float]]]:
    """Measure each candidate with each of its references by every metric."""
    return {
        name: [[float(value) for value in row] for row in values]
        for measure in measures
        for name, values in measure(candidates, references).items()
    }


def named(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return one summary's metrics under the names they have in results: the best, the mean, the best of all but one.

    >>> named({"rouge1": [0.25, 0.75, 0.5]})
    {'rouge1': 0.75, 'rouge1_mean': 0.5, 'rouge1_loo': 0.6666666666666666}
    """
    found: dict[str, float] = {}
    for name, values in scores.items():
        if not values:
            raise EnsueError("A summary without a reference cannot be measured; leave it out.")
        best = found[name] = max(values)
        found[name + MEAN] = sum(values) / len(values)
        if len(values) > 1:
            # Only where the best reference itself is left out does the second count.
            second = sorted(values)[-2]
            found[name + LEFT_OUT] = (best * (len(values) - 1) + second) / len(values)
    return found


def rouge_measure(
    candidates: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, list[list[float]]]:
    """Return ROUGE-1, ROUGE-2 and ROUGE-L with stems, by reference, as F1."""
    rows = rouge_of(candidates, references)
    return {
        name: [[getattr(one, name).f1 for one in row] for row in rows]
        for name in ("rouge1", "rouge2", "rougeL")
    }


def meteor_measure(wordnet: WordNet) -> Measure:
    """Measure METEOR by NLTK, which is what the paper's figures were made with (its human row comes out)."""
    return lambda candidates, references: {"meteor": meteor_of(candidates, references, wordnet.synonyms)}


def bertscore_measure(
    encoder: TokenEncoder, layer: int | None = None, notes: Counter[str] | None = None
) -> Measure:
    """Measure BERTScore (F1) by an encoder; figures of different encoders cannot be compared.

    Texts that the encoder cuts are counted in `notes`.
    """

    def measure(
        candidates: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, list[list[float]]]:
        limit = encoder.card.max_length
        if notes is not None and limit is not None:
            texts = list(dict.fromkeys([*candidates, *(text for own in references for text in own)]))
            cut = sum(len(one.ids) >= limit for one in encoder.text_tokens(texts))
            notes[f"texts of which {encoder.card.name} reads only the beginning for BERTScore"] += cut
        rows = bertscore_of(encoder, candidates, references, layer=layer)
        return {"bertscore": [[one.f1 for one in row] for row in rows]}

    return measure


def wordnet_for_meteor() -> WordNet:
    """Load WordNet from where it lies on this machine; it is fetched once, as models are, where it lies nowhere."""
    folder = find_wordnet()
    if folder is not None:
        return load_wordnet(folder)
    try:
        return load_wordnet(pull(catalog()["wordnet"]))
    except EnsueError as error:
        raise EnsueError(
            f"METEOR's synonyms need WordNet 3.0, which is not on this machine and cannot be fetched "
            f"({str(error).rstrip('.')}): install Debian's wordnet-base, set {VARIABLE} to a folder that holds "
            f"index.noun and data.noun, or leave METEOR out with --set metrics."
        ) from None
