"""The twelve tasks of DiscoEval: their names, groups, files and shapes."""

from __future__ import annotations

from dataclasses import dataclass

from ensue.benchmarks.probing.choices import select_tasks

GROUPS = ("SP", "BSO", "DC", "SSP", "PDTB", "RST")
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Spec:
    """One task: where its files lie, how many sentences a line holds, and how many classes it has.

    A task without `classes` states them itself: PDTB in its label set, RST in its training labels.
    """

    name: str
    group: str
    folder: str
    sentences: int
    classes: int | None

    @property
    def column(self) -> str:
        """The column of table 2 that the task belongs to: the group, but each kind of PDTB on its own."""
        return self.name if self.group == "PDTB" else self.group


SPECS = (
    *(Spec(f"SP/{domain}", "SP", f"SP/{domain}", 5, 5) for domain in ("wiki", "arxiv", "rocstory")),
    *(Spec(f"BSO/{domain}", "BSO", f"BSO/{domain}", 2, 2) for domain in ("wiki", "arxiv", "rocstory")),
    *(Spec(f"DC/{domain}", "DC", f"DC/{domain}", 6, 2) for domain in ("wiki", "chat")),
    Spec("SSP/abs", "SSP", "SSP/abs", 1, 2),
    Spec("PDTB/explicit", "PDTB", "PDTB/Explicit", 2, None),
    Spec("PDTB/implicit", "PDTB", "PDTB/Implicit", 2, None),
    Spec("RST", "RST", "RST", 2, None),
)


def select(name: str) -> list[Spec]:
    """Return the tasks a name stands for.

    >>> [spec.name for spec in select("PDTB")]
    ['PDTB/explicit', 'PDTB/implicit']
    """
    return select_tasks("discoeval", name, SPECS)
