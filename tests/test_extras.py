"""Every sentence that says what to install names an extra that there is, and that brings what is missing."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ensue.errors import EnsueError
from ensue.lazy import from_extra

TOP = Path(__file__).resolve().parent.parent
# What a hint speaks of, and the distribution that brings it.
BRINGS = {
    "spaCy": "spacy",
    "scikit-learn": "scikit-learn",
    "NLTK": "nltk",
    "rapidfuzz": "rapidfuzz",
    "sacrebleu": "sacrebleu",
    "pyarrow": "datasets",
    "datasets": "datasets",
    "huggingface_hub": "datasets",
    "torch": "torch",
    "transformers": "transformers",
    "pandas": "pandas",
    "its driver psycopg": "psycopg",
    "Ray": "ray",
}


def distributions(extra: str) -> set[str]:
    """What an extra brings, other extras it is made of included."""
    extras = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    found: set[str] = set()
    for wanted in extras[extra]:
        if inner := re.match(r"ensue\[([\w,]+)\]", wanted):
            found |= set().union(*(distributions(one) for one in inner[1].split(",")))
        else:
            found.add(re.split(r"[<>=\[~]", wanted)[0])
    return found


def hints(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each library that a file imports from an extra, and the extra."""
    tree = ast.parse(path.read_text("utf-8"))
    several = {
        id(one.elt): one.generators[0].iter for one in ast.walk(tree) if isinstance(one, ast.GeneratorExp)
    }
    for call in ast.walk(tree):
        called = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        if called == "load_spacy":
            yield "spaCy", ast.literal_eval(call.args[1])
        elif called == "from_extra" and path.name != "pipeline.py":
            named = call.args[2]
            libraries = [named] if isinstance(named, ast.Constant) else several[id(call)].elts
            yield from ((ast.literal_eval(one), ast.literal_eval(call.args[3])) for one in libraries)


def test_every_hint_names_the_extra_that_brings_what_is_missing() -> None:
    found = [(path, *hint) for path in sorted((TOP / "src").rglob("*.py")) for hint in hints(path)]
    for path, library, extra in found:
        assert BRINGS[library] in distributions(extra), f"{path.name}: {library} is not in ensue[{extra}]"
    assert len(found) >= 14


def test_the_platform_says_its_extra() -> None:
    assert "pip install 'ensue[platform]'" in (TOP / "src/ensue/cli/serve.py").read_text("utf-8")
    assert "fastapi" in distributions("platform")


def test_what_is_missing_is_said_and_what_is_broken_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halved.py").write_text("from math import no_such_thing\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        EnsueError, match=r"^Halving needs Halved, which cannot be imported \(.*no_such_thing"
    ):
        from_extra("halved", "Halving", "Halved", "models")
    with pytest.raises(
        EnsueError, match=r"needs Gone, which is not installed; run: pip install 'ensue\[hub\]'\.$"
    ):
        from_extra("ensue.gone", "Reading", "Gone", "hub")
    assert from_extra("math:sqrt", "Roots", "math", "models")(16.0) == 4.0


def test_word_counts_without_spacy_say_what_to_install() -> None:
    code = (
        "import sys; sys.modules['spacy'] = None\n"
        "from ensue.benchmarks.squality.statistics import spacy_words\n"
        "from ensue.errors import EnsueError\n"
        "try:\n    spacy_words('A word.')\nexcept EnsueError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip().endswith("run: pip install 'ensue[qags]'.")
    assert done.stdout.count("\n") == 1
