"""A cluster and two workers that tests share, and what one process makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ensue
from tests.execute.cluster import PATIENT, SMALL, Cluster, await_workers, cluster_of_two
from tests.support import tiny
from tests.support.corpus import write_corpus


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with cluster_of_two() as opened:
        yield opened


@pytest.fixture(scope="module")
def executor(cluster: Cluster) -> Iterator[ensue.RayExecutor]:
    """Two workers, one on each machine, which all tests but those of drivers have."""
    with ensue.RayExecutor(2, address=cluster.address, patience=PATIENT) as opened:
        await_workers(opened, 2)
        yield opened


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ray")


@pytest.fixture(scope="module")
def llama(place: Path) -> str:
    return str(tiny.save_llama(place / "llama", max_length=256))


@pytest.fixture(scope="module")
def corpus(place: Path) -> Path:
    return write_corpus(place / "corpus.jsonl", (6,) * 12)


@pytest.fixture(scope="module")
def expected(place: Path, llama: str, corpus: Path) -> Path:
    """The run that one process makes."""
    return ensue.run(
        "shuffle", model=llama, data=corpus, output=place / "local", model_options=SMALL, block_size="1,2"
    ).folder
