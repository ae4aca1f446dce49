"""Every sentence that says what to install names an extra that there is, and that brings what is missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
HINT = re.compile(r"ensue\[(\w+)\]")
# What a hint speaks of, and the distribution that brings it.
BRINGS = {
    "spaCy": "spacy",
    "scikit-learn": "scikit-learn",
    "NLTK": "nltk",
    "rapidfuzz": "rapidfuzz",
    "sacrebleu": "sacrebleu",
    "pyarrow": "datasets",
    "hub data set": "datasets",
    "models extra": "torch",
    "to_pandas": "pandas",
    "a tokenizer": "transformers",
    "The platform": "fastapi",
    "PostgreSQL": "psycopg",
    "needs Ray": "ray",
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


def test_every_hint_names_the_extra_that_brings_what_is_missing() -> None:
    hints = 0
    for path in sorted((TOP / "src").rglob("*.py")):
        for line in path.read_text("utf-8").splitlines():
            for extra in HINT.findall(line):
                needed = [brought for words, brought in BRINGS.items() if words in line]
                assert needed, f"{path.name}: {line.strip()} does not say what is missing"
                assert set(needed) <= distributions(extra), f"{path.name}: {line.strip()}"
                hints += 1
    assert hints >= 10


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
