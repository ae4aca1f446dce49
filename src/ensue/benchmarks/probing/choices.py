"""What suites on sentence vectors share: settings, names of tasks, and answering task by task and layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import RunContext, Setting, covers
from ensue.errors import EnsueError, hint
from ensue.models.protocols import Encoder, Layered, Model
from ensue.records import Codec, digest_of
from ensue.version import __version__

if TYPE_CHECKING:
    from ensue.benchmarks.probing.vectors import SentenceVectors

POOLINGS = ("cls", "mean", "last", "cls-average-over-layers")


def _layers(text: str) -> list[int] | str:
    return "all" if text == "all" else read.many(read.whole(0))(text)


VECTOR_SETTINGS = {
    "layer": Setting(
        None,
        "layers, one result row each, 0 the embedding, or all (none: own output)",
        read.optional(_layers),
    ),
    "pooling": Setting(
        None, f"{', '.join(POOLINGS)} (none: the encoder's own)", read.optional(read.one_of(*POOLINGS))
    ),
    "classifier_device": Setting(
        "auto", "where classifiers are trained: auto, cpu or cuda", read.one_of("auto", "cpu", "cuda")
    ),
}


def layers_of(encoder: Encoder, settings: Mapping[str, Any]) -> list[int | None]:
    """Return the layers asked for in rising order, none twice; [None] for the encoder's own output."""
    wanted = settings["layer"]
    if wanted is None:
        return [None]
    if settings["pooling"] == "cls-average-over-layers":
        raise EnsueError("cls-average-over-layers takes all layers at once; leave out layer or pooling.")
    if not isinstance(encoder, Layered):
        raise EnsueError(f"{encoder.card.name} has no layers to choose from; leave out layer.")
    depth = encoder.layer_count
    if wanted == "all":
        return list(range(depth + 1))
    beyond = [number for number in wanted if number > depth]
    if beyond:
        raise EnsueError(
            f"{encoder.card.name} has layers 0 (the embedding) to {depth}, no layer {beyond[0]}."
        )
    return sorted(wanted)


class NamedTask(Protocol):
    """A task as a suite lists it."""

    @property
    def name(self) -> str: ...

    @property
    def group(self) -> str: ...


class TaskSentences(Protocol):
    """A task with its files read."""

    @property
    def name(self) -> str: ...

    def sentences(self) -> Iterator[str]: ...

    def place_of(self, sentence: str) -> str | None: ...


N = TypeVar("N", bound=NamedTask)
D = TypeVar("D", bound=TaskSentences)
T = TypeVar("T")


def select_tasks(suite: str, name: str, tasks: Sequence[N]) -> list[N]:
    """Return the tasks of a name: one, a group, or all where the name is empty; capitals do not matter."""
    wanted = name.strip("/").lower()
    found = [task for task in tasks if wanted in ("", task.group.lower(), task.name.lower())]
    if found:
        return found
    known = list(dict.fromkeys([*(task.group for task in tasks), *(task.name for task in tasks)]))
    raise EnsueError(f"{suite} has no task {name!r}; {hint(wanted, known)}")


def signed_model(model: Model) -> str:
    """Return a model's part of a signature."""
    return f"model:{model.card.signed_name} weights:{model.card.identity.get('weights', '-')[:12]}"


def signed_vectors(settings: Mapping[str, Any], layers: Sequence[int | None]) -> str:
    """Return the part of a signature that says which vectors were used."""
    shown = "own" if layers == [None] else ",".join(map(str, layers))
    return f"layer:{shown} pooling:{settings['pooling'] or 'own'}"


def covered(names: Sequence[str], missing: Sequence[str], limit: int | None) -> dict[str, str]:
    """Return the settings that say what an average is over."""
    settings = {"covers": covers(len(names), len(names) + len(missing), limit), "tasks": ",".join(names)}
    return settings | ({"missing": ",".join(missing)} if missing else {})


def question_of(
    model: Model, layers: Sequence[int | None], settings: Mapping[str, Any], **facts: Any
) -> dict[str, Any]:
    """Return everything that answers depend on; which other layers are asked for changes nothing."""
    return {
        "version": __version__,
        "model": model.card.identity,
        "max_length": model.card.max_length,
        "own": layers == [None],
        "settings": {key: value for key, value in settings.items() if key != "layer"},
        **facts,
    }


def answer_all(
    encoder: Encoder,
    tasks: Sequence[D],
    layers: Sequence[int | None],
    pooling: str | None,
    question: Mapping[str, Any],
    codec: Codec[T],
    context: RunContext,
    answer: Callable[[D, int | None, SentenceVectors], T],
    unit: str,
) -> dict[tuple[str, int | None], T]:
    """Answer every task at every layer but what records hold, each distinct sentence encoded once."""
    from ensue.benchmarks.probing.vectors import encode_once

    records, progress = context.records, context.progress
    keys = {(task.name, n): digest_of(question, task.name, n) for task in tasks for n in layers}
    known = {place: records.get(codec, key) for place, key in keys.items()}
    found = {place: given for place, given in known.items() if given is not None}
    waiting = [task for task in tasks if any((task.name, n) not in found for n in layers)]
    if not waiting:
        return found
    vectors = encode_once(
        encoder,
        (sentence for task in waiting for sentence in task.sentences()),
        layers=layers,
        pooling=pooling,
        progress=progress,
        where=lambda sentence: next(filter(None, (task.place_of(sentence) for task in waiting))),
    )
    for task in waiting:
        for layer in layers:
            place = (task.name, layer)
            if place not in found:
                found[place] = answer(task, layer, vectors)
                records.add(codec, [(keys[place], found[place])])
                progress(len(found), len(keys), unit)
    return found
