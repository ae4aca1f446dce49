"""Systems of one benchmark: refused by name elsewhere, and called by no other name."""

from __future__ import annotations

from tests.support.command import here, refused


def test_a_system_of_another_benchmark_is_refused_by_name(tmp_path):
    refused(
        here("run", "shuffle", "--model", "lead", "--output", tmp_path / "run"),
        "lead is a system of squality",
    )
    refused(
        here("run", "shuffle", "--model", "bilstm"),
        "bilstm is a system of glue and superglue, not of shuffle",
    )
    (tmp_path / "text.txt").write_text("A text.")
    refused(
        here("score", tmp_path / "text.txt", "--model", "human"),
        "human is a system of squality, which scores no text",
    )
    assert not (tmp_path / "run").exists()
