"""What starts without what: help without heavy modules, and much of the package without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import environment, in_process_of_its_own
from tests.support.corpus import write_corpus

HEAVY = (
    "torch",
    "transformers",
    "safetensors",
    "tokenizers",
    "matplotlib",
    "numpy",
    "scipy",
    "pandas",
    "httpx",
)

# Imports of these fail as they do where the models extra is not installed.
BLOCK = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "transformers", "safetensors", "tokenizers", "accelerate", "gguf"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""
RUN_MAIN = """
sys.argv = ["ensue", *sys.argv[1:]]
from ensue.cli.main import main
try:
    main()
finally:
    print("loaded:", *sorted(sys.modules), file=sys.stderr)
"""


def python(code: str, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )


def loaded(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The top-level modules a command had imported when it ended."""
    line = next(line for line in done.stderr.splitlines() if line.startswith("loaded:"))
    return {name.partition(".")[0] for name in line.split()[1:]}


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["run", "--help"], ["models", "--help"], ["score", "--help"]]
)
def test_help_imports_nothing_heavy(arguments):
    done = python("import sys" + RUN_MAIN, *arguments)
    assert done.returncode == 0
    assert loaded(done) & set(HEAVY) == set()
    assert "ensue" in loaded(done)


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, ensue; print(*sys.modules); assert callable(ensue.run); print(ensue.__version__)"
    done = python(code)
    assert done.returncode == 0, done.stderr
    modules = {name.partition(".")[0] for name in done.stdout.splitlines()[0].split()}
    assert modules & set(HEAVY) == set()


def test_the_help_names_every_command():
    finished = in_process_of_its_own("--help")
    assert (finished.code, finished.err) == (0, "")
    for command in ("run", "score", "compare", "report", "models"):
        assert command in finished.out
    narrow = in_process_of_its_own("--help", COLUMNS="80")
    assert "..." not in narrow.out.partition("Commands:")[2], "a sentence is cut off"
    version = in_process_of_its_own("--version")
    assert version.out.startswith("ensue 0.")


def test_the_help_of_a_run_names_every_benchmark():
    words = (word.strip(",;") for word in in_process_of_its_own("run", "--help").out.split())
    assert {
        "shuffle",
        "chapterbreak",
        "discoeval",
        "senteval",
        "glue",
        "superglue",
        "qags",
        "squality",
    } <= set(words)


def test_a_notebook_completes_the_public_names_before_they_are_imported():
    done = python("import ensue; print(*dir(ensue))")
    assert {"Run", "compare", "load_model", "run", "score"} <= set(done.stdout.split())


def test_an_unknown_attribute_is_an_attribute_error():
    import ensue

    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        ensue.rum  # noqa: B018


@pytest.mark.parametrize(
    "module",
    [
        "ensue",
        "ensue.cli.main",
        "ensue.text.documents",
        "ensue.text.sentences",
        "ensue.stats.clustered",
        "ensue.stats.paired",
        "ensue.metrics.preference",
        "ensue.report.page",
        "ensue.report.table",
        "ensue.runs.run",
        "ensue.runs.compare",
        "ensue.benchmarks.shuffle.task",
        "ensue.models",
        "ensue.backends.endpoint.model",
    ],
)
def test_it_imports_without_torch(module):
    done = python(f"{BLOCK}\nimport {module}")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_baseline_run_its_report_and_a_comparison_need_no_torch(tmp_path):
    data = write_corpus(tmp_path / "corpus.jsonl", (6, 7, 8))
    command = ["run", "shuffle", "--data", data, "--json", "--report"]
    for model in ("random", "unigram"):
        done = python(BLOCK + RUN_MAIN, *command, "--model", model, "--output", model, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["model"] == model
        assert not loaded(done) & {"torch", "transformers", "safetensors"}
        assert (tmp_path / model / "report.html").stat().st_size > 10_000
    compared = python(BLOCK + RUN_MAIN, "compare", "random", "unigram", "--json", cwd=tmp_path)
    assert compared.returncode == 0, compared.stderr
    assert json.loads(compared.stdout)
    scored = python(BLOCK + RUN_MAIN, "score", data, "--model", "unigram", "--profile", cwd=tmp_path)
    assert scored.returncode == 0, scored.stderr


def test_a_model_that_needs_torch_says_what_to_install(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    for name in ("./model", "weights.gguf", "gpt2"):
        done = python(BLOCK + RUN_MAIN, "models", "show", name, cwd=tmp_path)
        (said,) = [line for line in done.stderr.splitlines() if not line.startswith("loaded:")]
        assert done.returncode == 2
        assert "pip install 'ensue[models]'" in said


def test_the_list_of_commands_says_what_each_command_says_of_itself() -> None:
    """Without importing them, so that help comes at once."""
    from ensue import lazy
    from ensue.cli.main import HOUSE

    done = python("import sys\n" + RUN_MAIN, "--help")
    assert done.returncode == 0, done.stderr
    listed = {
        line.split()[0]: line.split(maxsplit=1)[1]
        for line in done.stdout.partition("Commands:")[2].splitlines()
        if line
    }
    modules = set(done.stderr.partition("loaded:")[2].split())
    for name, (where, about) in HOUSE.items():
        assert listed[name] == about
        found = lazy.load(where)
        own = (found.info.help if hasattr(found, "info") else found.__doc__).strip().splitlines()[0]
        assert own.startswith(about.rstrip(".").split(" of your own")[0]), name
        assert where.partition(":")[0] not in modules - {"ensue.cli.groups"}
    assert "qags" in listed


def test_a_misspelt_command_is_met_with_the_nearest() -> None:
    done = python("import sys\n" + RUN_MAIN, "trian")
    assert (done.returncode, "Did you mean 'train'?" in done.stderr) == (2, True)
    done = python("import sys\n" + RUN_MAIN, "build", "chapterbrake")
    assert (done.returncode, "Did you mean 'chapterbreak'?" in done.stderr) == (2, True)
