"""Fine-tuning as a way of answering tasks: `ensue run glue --model minilm --mode finetune`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ensue.benchmarks.base import RunContext, Setting
from ensue.benchmarks.nlu.examples import TaskData
from ensue.benchmarks.nlu.systems import Answered, Settings
from ensue.errors import EnsueError
from ensue.models.protocols import Model
from ensue.train.finetune.recipe import LONGEST, POOLS, SETTINGS

if TYPE_CHECKING:
    from ensue.train.finetune.tasks import Base

# What a run's signature always names; other settings only where they were chosen.
_ALWAYS = ("pool", "pairs", "precision", "intermediate")
_NEVER = ("save", "intermediate_data", "intermediate_for")


class FinetuneSystem:
    """Fine-tunes a copy of a Hugging Face model on each task with a training set, several seeds if asked."""

    settings: Mapping[str, Setting] = SETTINGS

    def answer(
        self, model: Model, tasks: Sequence[TaskData], settings: Settings, seed: int, context: RunContext
    ) -> Iterator[Answered]:
        """Answers as they come; a task without a training set is answered by another's classifier, or left out."""
        from ensue.train.finetune.tasks import Finetuning

        yield from Finetuning(_base(model), tasks, _filled(settings), seed, context).answers()

    def signature(self, model: Model, settings: Settings) -> str:
        """Return the choices that differ from the recipes, and those that matter most."""
        values = _filled(settings)
        said = {key: values[key] for key in _ALWAYS}
        said["pool"] = own_pool(model) if values["pool"] == "auto" else values["pool"]
        for key, setting in self.settings.items():
            if key not in said and key not in _NEVER and values[key] != setting.default:
                said[key] = values[key]
        if values["intermediate"] != "none":
            said["intermediate_for"] = "+".join(values["intermediate_for"])
        words = " ".join(f"{key}:{value}" for key, value in said.items())
        return f"finetune optimiser:adamw schedule:linear best:dev runs:{values['runs']} {words}"


def own_pool(model: Model) -> str:
    """Return a model's pooling: as a sentence encoder states it, cls of a masked, last of a causal model."""
    if model.card.kind == "causal":
        return "last"
    stated = getattr(model, "pooling", "cls") if model.card.kind == "encoder" else "cls"
    return stated if stated in POOLS else "cls"


def _base(model: Model) -> Base:
    from ensue.backends.hf.encoder import EncoderModel
    from ensue.backends.hf.language import LanguageModel
    from ensue.backends.hf.loading import max_length
    from ensue.train.finetune.tasks import Base

    if not isinstance(model, EncoderModel | LanguageModel):
        raise EnsueError(
            f"Fine-tuning needs a Hugging Face model, and {model.card.name} is none; give an encoder such as minilm."
        )
    network = model.network
    limit = max_length(network, model.tokenizer) or LONGEST
    return Base(network.base_model, model.tokenizer, model.card, own_pool(model), limit)


def _filled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the defaults of those that are missing, as when the system is called from Python."""
    defaults = {key: setting.default for key, setting in SETTINGS.items()}
    known = {key: settings[key] for key in SETTINGS if key in settings}
    return {"runs": int(settings.get("runs") or 1), **defaults, **known}


system = FinetuneSystem()
