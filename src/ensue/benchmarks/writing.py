"""Texts that a model writes, each kept in a run's records as soon as it is finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ensue.models.protocols import EachGenerator, Generator
from ensue.progress import Progress
from ensue.records import Codec, Records


def write_texts(
    generator: Generator,
    prompts: Sequence[str],
    keys: Sequence[str],
    records: Records,
    codec: Codec[str],
    *,
    portion: int,
    progress: Progress | None = None,
    unit: str = "texts",
    **options: Any,
) -> list[str]:
    """Have a model write after each prompt, unless the records have its text under the prompt's key.

    A server gives its texts one by one, and each is kept when it comes. Elsewhere texts meet in a batch: portions are
    cut from all prompts, whatever is known already, so that the same ones meet when a run goes on, and one of which
    anything is missing is written whole.
    """
    if isinstance(generator, EachGenerator):
        _write_each(generator, prompts, keys, records, codec, progress, unit, options)
    else:
        for begin in range(0, len(prompts), portion):
            some = slice(begin, begin + portion)
            if not all(records.has(codec, key) for key in keys[some]):
                texts = generator.generate(prompts[some], **options)
                records.add(codec, list(zip(keys[some], texts, strict=True)))
            if progress is not None:
                progress(min(begin + portion, len(prompts)), len(prompts), unit)
    return [records.get(codec, key) or "" for key in keys]


def _write_each(
    generator: EachGenerator,
    prompts: Sequence[str],
    keys: Sequence[str],
    records: Records,
    codec: Codec[str],
    progress: Progress | None,
    unit: str,
    options: dict[str, Any],
) -> None:
    distinct = dict(zip(keys, prompts, strict=True))
    missing = [key for key in distinct if not records.has(codec, key)]
    done = len(distinct) - len(missing)
    for batch in generator.generate_each([distinct[key] for key in missing], **options):
        records.add(codec, [(missing[place], text) for place, text in batch])
        done += len(batch)
        if progress is not None:
            progress(done, len(distinct), unit)
