"""Texts that a model writes, each kept in a run's records as soon as it is finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ensue.models.protocols import EachGenerator, Generator, each_call
from ensue.progress import Progress, ignore
from ensue.records import Codec, Records


def write_texts(
    generator: Generator,
    prompts: Sequence[str],
    keys: Sequence[str],
    records: Records,
    codec: Codec[str],
    *,
    portion: int,
    progress: Progress = ignore,
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
        missing = _missing(keys, records, codec, portion)

        def write(begin: int) -> list[str]:
            return generator.generate(prompts[begin : begin + portion], **options)

        written = each_call(generator, write, missing)
        for begin in range(0, len(prompts), portion):
            if begin in missing:
                records.add(codec, list(zip(keys[begin : begin + portion], next(written), strict=True)))
            progress(min(begin + portion, len(prompts)), len(prompts), unit)
    return [records.get(codec, key) or "" for key in keys]


def _missing(keys: Sequence[str], records: Records, codec: Codec[str], portion: int) -> dict[int, None]:
    """Return where the portions begin of which something is neither known nor written with one before."""
    found: dict[int, None] = {}
    coming: set[str] = set()
    for begin in range(0, len(keys), portion):
        some = keys[begin : begin + portion]
        if not all(key in coming or records.has(codec, key) for key in some):
            found[begin] = None
            coming.update(some)
    return found


def _write_each(
    generator: EachGenerator,
    prompts: Sequence[str],
    keys: Sequence[str],
    records: Records,
    codec: Codec[str],
    progress: Progress,
    unit: str,
    options: dict[str, Any],
) -> None:
    distinct = dict(zip(keys, prompts, strict=True))
    missing = [key for key in distinct if not records.has(codec, key)]
    done = len(distinct) - len(missing)
    for batch in generator.generate_each([distinct[key] for key in missing], **options):
        records.add(codec, [(missing[place], text) for place, text in batch])
        done += len(batch)
        progress(done, len(distinct), unit)
