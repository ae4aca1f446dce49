"""How much faster more workers are, and that their results are those of one process.

    OMP_NUM_THREADS=1 python bench/ray_scaling.py [--model smollm2] [--documents 24] [--workers 1,2] [--executor ray]

Runs a small Shuffle Test in this process and by workers of one thread each, whose start and first look at the model
are left out, and prints a table (Markdown): seconds by the clock; the processor's
seconds of this process, of the busiest worker and of all; how many times faster the run would be if every process had
a core of its own (seconds of one process against the driver's and the busiest worker's together); how often each
worker loaded the model; whether items.jsonl is the same to the last byte.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import ensue
from ensue.executing import choose, executing
from ensue.text.documents import BUNDLED


class Measured(NamedTuple):
    """One run: seconds by the clock and of processors, how often models were loaded, and what came out."""

    clock: float
    driver: float
    workers: list[float]
    loads: str
    items: bytes


def measure(question: dict[str, Any], place: Path, executor: Any) -> Measured:
    """Run a question twice, the first time briefly, so that models are loaded; measure the second."""
    ensue.run("shuffle", **{**question, "limit": 1}, executor=executor, output=place / "first")
    spent = getattr(executor, "spent", dict)
    before, began, own = spent(), time.monotonic(), time.process_time()
    run = ensue.run("shuffle", **question, executor=executor, output=place / "run")
    clock, driver = time.monotonic() - began, time.process_time() - own
    after = spent()
    found = Measured(
        clock,
        driver,
        [seconds - before.get(worker, 0.0) for worker, seconds in after.items()],
        ", ".join(str(len(names)) for names in executor.loads().values()) if after else "1",
        (run.folder / "items.jsonl").read_bytes(),
    )
    shutil.rmtree(place / "first")
    shutil.rmtree(place / "run")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--data", default=BUNDLED)
    parser.add_argument("--documents", type=int, default=24)
    parser.add_argument("--shuffles", type=int, default=5)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--executor", default="ray")
    asked = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        parser.error("set OMP_NUM_THREADS=1, so that this process and each worker have one thread")
    question: dict[str, Any] = {
        "model": asked.model,
        "data": asked.data,
        "limit": asked.documents,
        "shuffles": asked.shuffles,
        "block_size": "1",
    }
    rows: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory() as name:
        for count in ["0", *asked.workers.split(",")]:
            chosen = choose(asked.executor, workers=int(count)) if int(count) else choose("local")
            with executing(chosen) as executor:
                # What is loaded once by a worker is loaded once here.
                own = {} if int(count) else {"model": ensue.load_model(asked.model)}
                rows[count] = measure(question | own, Path(name), executor)
    one = rows["0"]
    print(
        "| workers | seconds | × | processor: driver | busiest worker | all | × by processor | loads | same items |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for count, row in rows.items():
        busiest = max(row.workers, default=0.0)
        faster, by_processor = one.clock / row.clock, one.driver / (row.driver + busiest)
        print(
            f"| {'this process' if count == '0' else count} | {row.clock:.1f} | {faster:.2f} | {row.driver:.1f} "
            f"| {busiest:.1f} | {row.driver + sum(row.workers):.1f} | {by_processor:.2f} | {row.loads} "
            f"| {'yes' if row.items == one.items else 'NO'} |"
        )


if __name__ == "__main__":
    main()
