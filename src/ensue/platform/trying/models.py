"""What a worker does with texts: models loaded once, each request answered with them. Imports torch when called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ensue.errors import EnsueError
from ensue.platform.trying import results
from ensue.platform.trying.desk import Offer
from ensue.progress import Progress

# The texts of a request and whom to tell how far it is, to a result for JSON.
Task = Callable[[Mapping[str, str], Progress], Any]


class Qags(NamedTuple):
    """What asks and what answers; `required`, there is no worker without them."""

    questioner: str = "smollm2-qg"
    answerer: str = "minilm-qa"
    required: bool = False


def open_tasks(
    model: str,
    qags: Qags | None,
    options: Mapping[str, Any],
    say: Callable[[str], None] = lambda words: None,
) -> dict[Offer, Task]:
    """Load models and return what can be done with them."""
    name, task = _profiling(model, options)
    tasks = {Offer("profile", name): task}
    if qags is None:
        return tasks
    try:
        tasks[Offer("qags", f"{qags.questioner} and {qags.answerer}")] = _inspecting(qags, options)
    except (EnsueError, ImportError) as error:
        if qags.required:
            raise
        say(f"Summaries are not questioned here: {error}")
    return tasks


def _profiling(model: str, options: Mapping[str, Any]) -> tuple[str, Task]:
    from ensue.runs.profile import open_profiler, profiles_of
    from ensue.runs.texts import given_texts

    profiler = open_profiler(model, model_options=options)

    def task(texts: Mapping[str, str], progress: Progress) -> Any:
        given = given_texts([texts["text"]])
        (found,) = profiles_of(profiler, given, " ", progress=progress)
        return results.write("profile", found)

    return profiler.scorer.card.name, task


def _inspecting(qags: Qags, options: Mapping[str, Any]) -> Task:
    from ensue.benchmarks.qags.commands import open_inspector

    inspect = open_inspector(qags.questioner, qags.answerer, model_options=options)

    def task(texts: Mapping[str, str], progress: Progress) -> Any:
        found = inspect(texts["source"], texts["summary"], progress=progress)
        return results.write("qags", found)

    return task
