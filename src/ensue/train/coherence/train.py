"""Train a coherence model: documents in, a folder out that rates texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from accelerate import Accelerator

from ensue.backends.hf.encoder import VectorModel
from ensue.backends.hf.loading import max_length
from ensue.backends.hf.rater import RATER, RaterReading
from ensue.errors import EnsueError
from ensue.progress import Progress
from ensue.train.cards import page
from ensue.train.coherence.options import CoherenceOptions
from ensue.train.coherence.pairs import PairObjective, PairSet, PairTexts, make_pairs, network_of
from ensue.train.documents import read_sides
from ensue.train.finetune.inputs import Inputs
from ensue.train.finetune.network import ExampleBatch
from ensue.train.finetune.recipe import LONGEST
from ensue.train.finetune.system import own_pool
from ensue.train.headed import Learned, load_base
from ensue.train.loop import Fitted
from ensue.train.run import Described, Job, run_training


def train_coherence(options: CoherenceOptions, progress: Progress | None = None) -> Fitted:
    """Train on pairs of most documents, keep what has the lowest loss on those of the others, and leave it in the
    output."""
    return run_training(options, lambda accelerator, _: _prepare(options, accelerator), progress)


def _prepare(options: CoherenceOptions, accelerator: Accelerator) -> Job:
    sides = read_sides(options, fewest=2)
    base = load_base(options.model, "a coherence model")
    reading = _reading(options, base)
    inputs = Inputs(base.tokenizer, reading.max_length)
    pad, device = int(base.tokenizer.pad_token_id or 0), accelerator.device
    made = {name: _pairs(options, name, getattr(sides, name)) for name in ("train", "dev")}
    train, dev = (PairSet(made[name], inputs, device, pad) for name in ("train", "dev"))
    learned = Learned(
        RATER,
        options,
        base,
        reading,
        lambda trunk: network_of(trunk, reading.pooling, options.dropout),
        device,
    )
    objective = PairObjective(learned.network, train.packs, options.loss, options.margin)

    def batches(epoch: int) -> Iterator[ExampleBatch]:
        return train.batches(options.batch, options.seed, epoch)

    loop = learned.loop(-(-2 * len(train.pairs) // options.batch), accelerator.num_processes)
    return Job(
        objective,
        loop,
        batches,
        lambda: objective.figures(dev),
        # The mark by which a zero-shot test refuses it.
        lambda: learned.save(trained_on_shuffled_text=True),
        describe=lambda facts, fitted: _describe(options, facts, fitted),
        facts={
            "documents": sides.facts(),
            "pairs": {
                name: {"documents": found.documents, "pairs": len(found.pairs)}
                for name, found in made.items()
            },
            "cut": {"train": train.cut, "dev": dev.cut},
            **learned.facts(loop),
        },
        question=sides.digest,
    )


def _reading(options: CoherenceOptions, base: VectorModel) -> RaterReading:
    limit = max_length(base.network, base.tokenizer)
    asked = options.max_length
    if asked is not None and limit is not None and asked > limit:
        raise EnsueError(f"{options.model} takes {limit} tokens, fewer than --max-length {asked}.")
    pool = own_pool(base) if options.pool == "auto" else options.pool
    return RaterReading(pool, asked or min(limit or LONGEST, LONGEST), options.joiner)


def _pairs(options: CoherenceOptions, name: str, documents: Any) -> PairTexts:
    made = make_pairs(documents, options.shuffling)
    if not made.pairs:
        side = "training" if name == "train" else "held-out"
        raise EnsueError(
            f"No {side} document is long enough to shuffle: each needs two different blocks; name more --data."
        )
    return made


def _describe(options: CoherenceOptions, facts: Mapping[str, Any], fitted: Fitted) -> Described:
    learned, sizes = facts["pairs"]["train"], ",".join(map(str, options.block_sizes))
    words = (
        f"{options.base} trained {options.learns} to tell {learned['documents']} documents from shuffled "
        f"ones (k = {sizes}, {options.loss}), {learned['pairs']} pairs, {fitted.best_step} steps, dev accuracy "
        f"{fitted.best['dev_accuracy']:.3f}"
    )
    readme = _readme(options, facts, fitted)
    return Described(words, f"trained by ensue from {options.base}", readme=readme)


def _readme(options: CoherenceOptions, facts: Mapping[str, Any], fitted: Fitted) -> str:
    pairs, cut = facts["pairs"], facts["cut"]
    about = (
        f"Rates how coherent a text is: {options.base} with one output, trained by ensue to tell documents from "
        f"versions of them with blocks of {', '.join(map(str, options.block_sizes))} sentence(s) shuffled; "
        f"{facts['trained_parameters']:,} of {facts['parameters']:,} parameters learned. Load it with "
        f'`ensue.load_model("FOLDER").rate([sentences])`.'
    )
    recipe = (
        f"Loss: {options.loss}. {options.recipe('texts', facts['learning_rate'], fitted)} Texts of at most "
        f"{options.max_sentences} sentences, cut after {facts['reading']['max_length']} tokens ({cut['train']:,} "
        f"training and {cut['dev']:,} held-out texts were)."
    )
    data = (
        f"{options.about_data or 'Nothing else is known of the data here.'} {pairs['train']['pairs']:,} pairs of "
        f"{pairs['train']['documents']:,} documents to learn from, {pairs['dev']['pairs']:,} of "
        f"{pairs['dev']['documents']:,} held out. No text of the data is in this folder."
    )
    held = (
        f"The original is rated above the shuffled version in {100 * fitted.best['dev_accuracy']:.1f} % of the "
        f"held-out pairs. They also decided which step was kept."
    )
    limits = (
        "It has seen shuffled text, so a zero-shot Shuffle Test refuses it: a high figure there says that it knows "
        "shuffling when it sees it, not that it knows coherence."
    )
    sections = {"Held-out accuracy": held, "Recipe": recipe, "Data": data, "Limits": limits}
    return page("Coherence model", about, sections)
