"""The metrics that stand beside QAGS: overlap with the source, and ROUGE, BLEU, METEOR, BERTScore with references."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ensue.benchmarks.qags.baselines import BASELINES
from ensue.benchmarks.qags.sets import JudgedSet
from ensue.models.protocols import TokenEncoder

# Groups of metrics, as a user names them; those but the first need references.
GROUPS = ("overlap", "rouge", "bleu", "meteor", "bertscore")
QAGS = "qags"
Values = dict[str, list[float]]


def overlap_values(judged: JudgedSet) -> Values:
    """What needs no model and no reference: the shares of the summary that stand in its source."""
    return {
        name: [score(pair.source, pair.summary) for pair in judged.pairs] for name, score in BASELINES.items()
    }


def rouge_values(judged: JudgedSet) -> Values:
    """ROUGE's F1 with Porter's stems, the best over references."""
    from ensue.metrics.overlap import rouge_of

    rows = rouge_of(_texts(judged), judged.references)
    return {
        "rouge-1": [max(one.rouge1.f1 for one in row) for row in rows],
        "rouge-2": [max(one.rouge2.f1 for one in row) for row in rows],
        "rouge-l": [max(one.rougeL.f1 for one in row) for row in rows],
    }


def bleu_values(judged: JudgedSet) -> Values:
    """BLEU of each summary with all of its references together."""
    from ensue.metrics.bleu import bleu

    rows = [bleu(text, own) for text, own in zip(_texts(judged), judged.references, strict=True)]
    return {f"bleu-{order}": [row[order - 1] for row in rows] for order in range(1, 5)}


def meteor_values(judged: JudgedSet) -> Values:
    """NLTK's METEOR, the best over references."""
    from ensue.benchmarks.summaries.scoring import wordnet_for_meteor
    from ensue.metrics.meteor import meteor_of

    rows = meteor_of(_texts(judged), judged.references, wordnet_for_meteor().synonyms)
    return {"meteor": [max(row) for row in rows]}


def bertscore_values(judged: JudgedSet, encoder: TokenEncoder) -> Values:
    """BERTScore's F1, the best over references."""
    from ensue.benchmarks.summaries.bertscore import bertscore_of

    rows = bertscore_of(encoder, _texts(judged), judged.references)
    return {"bertscore": [max(one.f1 for one in row) for row in rows]}


REFERENCE_VALUES: Mapping[str, Callable[[JudgedSet], Values]] = {
    "rouge": rouge_values,
    "bleu": bleu_values,
    "meteor": meteor_values,
}


def _texts(judged: JudgedSet) -> Sequence[str]:
    return [pair.summary for pair in judged.pairs]
