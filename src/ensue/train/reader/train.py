"""Train a reader: documents in, a folder out that says of each sentence of a text whether it belongs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from accelerate import Accelerator

from ensue.backends.hf.loading import max_length
from ensue.backends.hf.reader import SentenceTokens
from ensue.backends.hf.reader_network import READER, ReaderNetwork, ReaderReading
from ensue.errors import EnsueError
from ensue.parallel import cores
from ensue.progress import Progress
from ensue.train.cards import page
from ensue.train.documents import read_sides
from ensue.train.headed import Learned, load_base
from ensue.train.loop import Fitted
from ensue.train.reader.objective import ReaderObjective, WindowBatch, WindowSet
from ensue.train.reader.options import ReaderOptions
from ensue.train.reader.versions import FEWEST, Versions, draw_versions
from ensue.train.run import Described, Job, run_training


def train_reader(options: ReaderOptions, progress: Progress | None = None) -> Fitted:
    """Train on windows of most documents, keep what has the lowest loss on those of the others, and leave it in the
    output."""
    return run_training(options, lambda accelerator, _: _prepare(options, accelerator), progress)


def _prepare(options: ReaderOptions, accelerator: Accelerator) -> Job:
    sides = read_sides(options, fewest=FEWEST)
    base = load_base(options.model, "a reader")
    limit = max_length(base.network)
    if limit is not None and options.max_length > limit:
        raise EnsueError(
            f"{options.model} takes {limit} tokens, fewer than --max-length {options.max_length}."
        )
    reading = _reading(options, base.network.base_model)
    tokens = SentenceTokens(base, reading)
    fill, device = int(base.tokenizer.pad_token_id or 0), accelerator.device
    made = {name: _versions(options, name, getattr(sides, name)) for name in ("train", "dev")}
    train, dev = (WindowSet(made[name], tokens, device, fill) for name in ("train", "dev"))
    learned = Learned(READER, options, base, reading, lambda trunk: ReaderNetwork(trunk, reading), device)
    objective = ReaderObjective(learned.network)

    def batches(epoch: int) -> Iterator[WindowBatch]:
        return train.batches(options.batch, options.seed, epoch)

    loop = learned.loop(-(-len(train.windows) // options.batch), accelerator.num_processes)
    return Job(
        objective,
        loop,
        batches,
        lambda: objective.figures(dev, options.batch),
        learned.save,
        describe=lambda facts, fitted: _describe(options, facts, fitted),
        facts={
            "documents": sides.facts(),
            "windows": {
                name: {
                    "documents": found.documents,
                    "windows": len(found.versions),
                    "intruders": sum(len(one.intruders) for one in found.versions),
                }
                for name, found in made.items()
            },
            **learned.facts(loop),
        },
        question=sides.digest,
    )


def _reading(options: ReaderOptions, trunk: Any) -> ReaderReading:
    """Return how the reader reads; refuse what its model has not."""
    if options.both_ways and not hasattr(trunk, "rotary_emb"):
        raise EnsueError(
            f"{options.model} does not read from left to right as Llama does; leave out --both-ways."
        )
    known = int(trunk.config.num_hidden_layers)
    if max(options.layers, options.both_ways) > known:
        raise EnsueError(f"{options.model} has {known} layers; lower --layers or --both-ways.")
    try:
        return ReaderReading(
            options.max_length, options.max_sentence, options.layers, options.both_ways, options.among
        )
    except ValueError as error:
        raise EnsueError(f"A reader cannot be made so: {error}.") from None


def _versions(options: ReaderOptions, name: str, documents: Any) -> Versions:
    made = draw_versions(documents, options.drawing, options.workers or cores())
    if not any(one.intruders for one in made.versions):
        side = "training" if name == "train" else "held-out"
        raise EnsueError(
            f"No intruder can be drawn for the {side} documents: there must be two of {FEWEST} sentences in a "
            f"domain; name more --data."
        )
    return made


def _describe(options: ReaderOptions, facts: Mapping[str, Any], fitted: Fitted) -> Described:
    learned = facts["windows"]["train"]
    words = (
        f"{options.base} trained {options.learns} to tell sentences of {learned['documents']} documents from "
        f"intruders, {learned['windows']} windows, {fitted.best_step} steps, dev loss {fitted.best_loss:.4f}"
    )
    readme = _readme(options, facts, fitted)
    return Described(words, f"trained by ensue from {options.base}", readme=readme)


def _readme(options: ReaderOptions, facts: Mapping[str, Any], fitted: Fitted) -> str:
    train, dev = facts["windows"]["train"], facts["windows"]["dev"]
    about = (
        f"Says of each sentence of a text whether it belongs where it stands: {options.base} with one output, "
        f"trained by ensue on texts some of whose sentences were replaced by sentences of other documents; "
        f"{facts['trained_parameters']:,} of {facts['parameters']:,} parameters learned. Load it with "
        f'`ensue.load_model("FOLDER").read([sentences])`; `ensue score --profile` and `ensue run intruder` use it.'
    )
    recipe = (
        f"Windows of at most {options.max_sentences} sentences and {options.max_length} tokens; {options.hard:.0%} "
        f"of the intruders are drawn from the {options.nearest} nearest in words to what they replace, the others "
        f"from all, within pools of about {options.pool} documents of a domain. The loss is that of each "
        f"sentence but a window's first. {options.recipe('windows', facts['learning_rate'], fitted)}"
    )
    data = (
        f"{options.about_data or 'Nothing else is known of the data here.'} {train['windows']:,} windows of "
        f"{train['documents']:,} documents with {train['intruders']:,} intruders to learn from, {dev['windows']:,} "
        f"of {dev['documents']:,} held out. No text of the data is in this folder."
    )
    first = [
        f"{100 * value:.1f} % of {name.rpartition('_')[2]} ones"
        for name, value in fitted.best.items()
        if name.startswith("dev_first_")
    ]
    held = (
        f"In held-out windows with one intruder it belongs least by the logit in {' and '.join(first) or 'none'}; "
        f"the loss a sentence is {fitted.best_loss:.4f}. They also decided which step was kept."
    )
    limits = (
        "It has seen intruders made by the rules of `ensue run intruder`, so a figure of its own there is that of a "
        "trained model. It knows nothing of facts, and was not shown sentences out of order."
    )
    sections = {"Held-out windows": held, "Recipe": recipe, "Data": data, "Limits": limits}
    return page("Reader", about, sections)
