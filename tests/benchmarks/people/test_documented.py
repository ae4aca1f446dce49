"""What docs/annotation-kinds.md says of custom projects: its example can be made, its table has every type."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ensue.benchmarks.people.custom import Custom
from ensue.benchmarks.people.form import TYPES
from ensue.benchmarks.people.kind import kind, settings_of

PAGE = (Path(__file__).parents[3] / "docs" / "annotation-kinds.md").read_text("utf-8")


def test_the_example_of_a_project_is_one(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "project.toml").write_text(example)
    (tmp_path / "instructions.md").write_text("Read *both*.")
    line = {"id": "a1", "article": "It rains.", "first": "Rain.", "second": "Sun."}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(line) + "\n")
    made = kind("custom")
    assert isinstance(made, Custom)
    preset = made.preset(str(tmp_path))
    assert preset == {"labels": 3, "pay": 0.2, "currency": "USD"}
    values = {name: one.default for name, one in settings_of(made).items()} | preset
    built = made.build(str(tmp_path), values, 0)
    assert built.title == "Which summary is better?"
    (item,) = built.items
    assert [one.type for one in item.form.fields] == ["preference", "scale", "spans", "choice", "text"]
    assert {one.text for one in item.form.panels} == {"It rains.", "Rain.", "Sun."}


def test_every_type_of_question_is_in_the_table() -> None:
    table = PAGE[PAGE.index("| type | its own keys | value in the export |") :]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.MULTILINE))
    assert rows.keys() == TYPES.keys()
    for name, keys in TYPES.items():
        assert all(f"`{key}`" in rows[name] for key in keys), name
