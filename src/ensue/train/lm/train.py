"""Fine-tune a language model on documents: files of documents in, a model folder out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator

from ensue.atomic import make_readable
from ensue.backends.hf.adapted import CAUSAL, MASKED, masked_network, trunk_of
from ensue.backends.hf.adapter import adapt, base_fingerprint, save_adapter
from ensue.backends.hf.language import CausalModel
from ensue.backends.hf.loading import max_length
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.card import write_card_facts
from ensue.models.request import Policy
from ensue.progress import Progress
from ensue.scoring.masked import specials_of
from ensue.text.documents import Document
from ensue.train.cards import page
from ensue.train.documents import Sides, read_sides
from ensue.train.lm.objective import LanguageObjective, Masking
from ensue.train.lm.options import LanguageOptions
from ensue.train.lm.rows import Frame, RowBatch, Rows, make_pieces
from ensue.train.loop import Fitted
from ensue.train.run import Described, Job, parameters_of, run_training

# Longer rows cost more attention and give these models nothing.
_LONGEST_ROW = 2048


class Start(NamedTuple):
    """What is trained from: the loaded model, the network with the head the objective needs, how texts are framed,
    what is masked (None: nothing), and how many tokens a row has."""

    base: Any
    network: Any
    fingerprint: str
    frame: Frame
    masking: Masking | None
    width: int

    @property
    def objective(self) -> str:
        return "causal" if self.masking is None else "masked"


def train_language(options: LanguageOptions, progress: Progress | None = None) -> Fitted:
    """Train on most documents, keep what has the lowest loss on the others, and leave it in the output."""
    return run_training(options, lambda accelerator, _: _prepare(options, accelerator), progress)


def _prepare(options: LanguageOptions, accelerator: Accelerator) -> Job:
    sides = read_sides(options)
    begun = start_of(options)
    network = begun.network.to(accelerator.device)
    objective = LanguageObjective(network, begun.frame, masking=begun.masking, seed=options.seed)
    train, dev = (
        _rows(begun, name, documents, options, objective, accelerator.device)
        for name, documents in (("training", sides.train), ("held-out", sides.dev))
    )
    _choose_learned(begun, options)
    objective.eval()
    with torch.inference_mode(), accelerator.autocast():
        before = objective.figures(dev.rows, options.batch)

    def batches(epoch: int) -> Iterator[RowBatch]:
        return train.rows.batches(options.batch, np.random.default_rng([options.seed, epoch]))

    def evaluate() -> Mapping[str, float]:
        return objective.figures(dev.rows, options.batch)

    return Job(
        objective,
        options.counted(-(-len(train.rows) // options.batch), accelerator.num_processes),
        batches,
        evaluate,
        save=lambda: _save(options, begun),
        describe=lambda facts, fitted: _describe(options, begun, sides, facts, fitted),
        facts={
            "objective": begun.objective,
            "documents": sides.facts(),
            "tokens": {"train": train.tokens, "dev": dev.tokens},
            "rows": {
                "train": len(train.rows),
                "dev": len(dev.rows),
                "width": begun.width,
                "filled": train.rows.filled,
                "packed": objective.packed,
                "divided": train.divided + dev.divided,
            },
            "before": before,
            "base": begun.base.card.as_dict(),
            **parameters_of(network),
        },
        question=sides.digest,
    )


def start_of(options: LanguageOptions) -> Start:
    """Load the model, with a new head where it has none and tokens are to be masked."""
    base: Any = load_model(options.model, device="cpu", dtype="float32")
    causal = isinstance(base, CausalModel)
    masked = not causal if options.objective == "auto" else options.objective == "masked"
    if masked == causal:
        needed = "a masked language model or an encoder" if masked else "a causal language model"
        raise EnsueError(f"--objective {options.objective} needs {needed}, which {options.model} is not.")
    torch.manual_seed(options.seed)
    network = masked_network(base) if masked else base.network
    masking = None
    if masked:
        specials = specials_of(base.tokenizer, base.card.name)
        frame = Frame(specials.before, specials.after)
        vocabulary = int(network.get_output_embeddings().weight.shape[0])
        masking = Masking(specials.mask, options.masked_share, vocabulary)
    else:
        bos = base._bos(Policy())
        frame = Frame(() if bos is None else (bos,))
    limit = max_length(network, base.tokenizer)
    width = options.row_tokens or min(limit or _LONGEST_ROW, _LONGEST_ROW)
    if limit is not None and width > limit:
        raise EnsueError(f"{options.model} takes {limit} tokens, fewer than --row-tokens {width}.")
    if width < frame.extra + 2:
        raise EnsueError(f"Rows of {width} tokens leave no room for text; raise --row-tokens.")
    return Start(base, network, base_fingerprint(base.network), frame, masking, width)


class _Side(NamedTuple):
    rows: Rows
    tokens: int
    divided: int


def _rows(
    begun: Start,
    name: str,
    documents: Sequence[Document],
    options: LanguageOptions,
    objective: LanguageObjective,
    device: torch.device,
) -> _Side:
    texts = [options.joiner.join(document.sentences) for document in documents]
    pieces = make_pieces(begun.base.tokenizer, texts, begun.frame, begun.width)
    if not pieces.ids:
        raise EnsueError(f"The {name} documents have no two tokens of text; name more --data.")
    rows = Rows(pieces.ids, begun.frame, begun.width, device, packed=objective.packed)
    return _Side(rows, sum(len(ids) - begun.frame.extra for ids in pieces.ids), pieces.divided)


def _choose_learned(begun: Start, options: LanguageOptions) -> None:
    """Let all weights learn, or an adapter and what of the head is new."""
    if options.adapter is None:
        begun.network.requires_grad_(True)
    else:
        adapt(trunk_of(begun.network), options.adapter)


def _save(options: LanguageOptions, begun: Start) -> None:
    """Save the model as it stands; what a score depends on beyond its weights is taken over from its base."""
    output, card = options.output, begun.base.card
    if options.adapter is None:
        begun.network.save_pretrained(output)
        begun.base.tokenizer.save_pretrained(output)
        make_readable(output)
    else:
        save_adapter(
            output,
            begun.network,
            architecture=CAUSAL if begun.masking is None else MASKED,
            base=options.base,
            fingerprint=begun.fingerprint,
            shape=options.adapter,
        )
    write_card_facts(
        output,
        licence=card.licence,
        needs_bos=card.needs_bos,
        trained_on_shuffled_text=card.trained_on_shuffled_text,
    )


def _describe(
    options: LanguageOptions, begun: Start, sides: Sides, facts: Mapping[str, Any], fitted: Fitted
) -> Described:
    tokens, before, after = facts["tokens"]["train"], facts["before"]["perplexity"], fitted.best["perplexity"]
    words = (
        f"{options.base} fine-tuned {options.learns} ({begun.objective}) on {len(sides.train)} documents, "
        f"{tokens} tokens, {fitted.best_step} steps, dev perplexity {after:.3f} (before {before:.3f})"
    )
    return Described(words, f"trained by ensue from {options.base}", readme=_readme(options, facts, fitted))


def _readme(options: LanguageOptions, facts: Mapping[str, Any], fitted: Fitted) -> str:
    rows, documents = facts["rows"], facts["documents"]
    masked = facts["objective"] == "masked"
    about = (
        f"{options.base}, trained on with a {facts['objective']} language-modelling loss by ensue: "
        f"{facts['trained_parameters']:,} of {facts['parameters']:,} parameters learned."
    )
    learned = (
        f"{100 * options.masked_share:g} % of the tokens are predicted; of these 80 % are masked, 10 % replaced by a "
        f"random token, 10 % left. "
        if masked
        else ""
    )
    apart = (
        "Documents lie side by side in rows and do not see one another."
        if rows["packed"]
        else "Each row holds one document."
    )
    recipe = (
        f"{learned}{apart} Rows of {rows['width']} tokens ({100 * rows['filled']:.1f} % filled). "
        f"{options.recipe('rows', options.loop.learning_rate, fitted)} "
        f"{rows['divided']} documents were longer than a row and divided."
    )
    data = (
        f"{options.about_data or 'Nothing else is known of the data here.'} {documents['train']:,} documents, "
        f"{facts['tokens']['train']:,} tokens to learn from; {documents['dev']:,} documents, "
        f"{facts['tokens']['dev']:,} tokens held out. No text of the data is in this folder."
    )
    held = (
        f"Perplexity a {'masked ' if masked else ''}token on the held-out documents: {fitted.best['perplexity']:.3f} "
        f"(before: {facts['before']['perplexity']:.3f}). They also decided which step was kept."
    )
    return page("Language model", about, {"Recipe": recipe, "Data": data, "Held-out perplexity": held})
