"""Projects of anybody's own: what a project.toml and a file of JSON lines become, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.people.checking import check_answer, settled
from ensue.benchmarks.people.custom import KIND
from ensue.benchmarks.people.kind import settings_of
from ensue.benchmarks.settings import resolve
from ensue.errors import EnsueError

TOML = """
title = "Which is better?"
instructions = "Read **both**."
data = "pairs.jsonl"

[settings]
labels = 3

[[panels]]
id = "one"
title = "About {topic}"
text = "{a}"

[[panels]]
id = "two"
sentences = "{b}"

[[fields]]
id = "better"
type = "preference"
label = "Which?"
left = "one"
right = "two"
random = true
"""
ROWS: list[dict[str, Any]] = [
    {"id": f"{n}", "topic": "t", "a": f"A{n}", "b": ["B.", "C."]} for n in range(40)
]


def written(folder: Path, toml: str = TOML, rows: list[dict[str, Any]] = ROWS) -> str:
    (folder / "project.toml").write_text(toml)
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / "project.toml")


def test_every_line_becomes_an_item_with_its_columns(tmp_path: Path) -> None:
    built = KIND.build(written(tmp_path), {}, 0)
    assert (built.title, built.instructions) == ("Which is better?", "Read **both**.")
    assert [item.key["id"] for item in built.items] == [f"{n}" for n in range(40)]
    panels = built.items[3].form.panels
    assert (panels[0].title, panels[0].text, panels[1].sentences) == ("About t", "A3", ("B.", "C."))
    assert KIND.preset(str(tmp_path)) == {"labels": 3}


def test_sides_are_by_chance_the_same_again_and_said(tmp_path: Path) -> None:
    path = written(tmp_path)
    first, again, other = (KIND.build(path, {}, seed).items for seed in (1, 1, 2))
    assert [item.form for item in first] == [item.form for item in again]
    assert [item.form for item in first] != [item.form for item in other]
    for item in first:
        (field,) = item.form.fields
        assert item.key["sides"]["better"] == {key: field.more[key] for key in ("left", "right")}
    left = [item.form.fields[0].more["left"] for item in first]
    assert 8 <= left.count("one") <= 32


def test_what_is_right_is_so_whatever_side_it_is_on_and_in_whatever_order(tmp_path: Path) -> None:
    """Gold values name the panels as the project.toml has them, and options in any order."""
    options = "options = [{value = 'x', label = 'X'}, {value = 'y', label = 'Y'}]"
    toml = TOML + f'[[fields]]\nid = "all"\ntype = "choices"\nlabel = "All?"\n{options}\n'
    gold = {"better": "left", "all": ["y", "x"]}
    for item in KIND.build(written(tmp_path, toml, [{**row, "gold": gold} for row in ROWS]), {}, 0).items:
        sides = item.key["sides"]["better"]
        first = "left" if sides["left"] == "one" else "right"
        for said in (["x", "y"], ["y", "x"]):
            given = settled(item.form, {"better": first, "all": said})
            assert item.gold is not None
            assert KIND.right(item.gold, given)
        other = {"left": "right", "right": "left"}[first]
        assert not KIND.right(item.gold, settled(item.form, {"better": other, "all": ["x", "y"]}))


def test_what_depends_on_a_side_does_so_whatever_panel_chance_puts_there(tmp_path: Path) -> None:
    when = 'when = {field = "better", equals = "left"}'
    toml = TOML + f'[[fields]]\nid = "why"\ntype = "text"\nlabel = "Why the first?"\n{when}\n'
    for item in KIND.build(written(tmp_path, toml), {}, 0).items:
        sides = item.key["sides"]["better"]
        first = "left" if sides["left"] == "one" else "right"
        assert check_answer(item.form, {"better": first}) == ["Why the first is not answered."]
        assert check_answer(item.form, {"better": {"left": "right", "right": "left"}[first]}) == []


def test_nothing_is_as_good_as_no_column(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("id", "group", "phase", "control", "gold", "words"))
    (item,) = KIND.build(written(tmp_path, rows=[{**ROWS[0], **nothing}]), {}, 0).items
    assert (item.key["id"], item.group, item.phase, item.control) == ("1", "", "work", False)
    assert (item.gold, item.words) == (None, "")


WHY = '[[fields]]\nid = "why"\ntype = "text"\nlabel = "Why?"\n'


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"a": None}, "no column 'a'"),
        ({"phase": "rest"}, "none of training"),
        ({"control": True}, "no gold values"),
        ({"phase": "training"}, "no gold values"),
        ({"gold": {"better": "up"}}, "gold: "),
        ({"id": "1"}, "there already"),
        ({"b": 3}, "the panel 'two' has sentences = 3, where a list of texts is expected"),
        ({"control": "no"}, 'control = "no", where true or false is expected'),
        ({"control": True, "gold": {}}, "for control and has no gold values"),
        ({"phase": ["work"]}, r'phase \["work"\] is none of training'),
        ({"id": ["1"]}, r'id = \["1"\], where a text is expected'),
        ({"words": {"a": True}}, r'words = {"a": true}, where a text is expected'),
    ],
    ids=[
        "column",
        "phase",
        "control",
        "training",
        "gold",
        "id",
        "sentences",
        "true",
        "no gold",
        "list",
        "id list",
        "words",
    ],
)
def test_a_line_that_will_not_do_is_named(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    row = {key: value for key, value in {**ROWS[0], **change}.items() if value is not None}
    with pytest.raises(EnsueError, match=words) as found:
        KIND.build(written(tmp_path, rows=[ROWS[1], row]), {}, 0)
    assert "line 2" in str(found.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('data = "pairs.jsonl"', 'data = "../pairs.jsonl"', "not in its folder"),
        ('data = "pairs.jsonl"', 'data = "/etc/passwd"', "not in its folder"),
        ('"Read **both**."', '"gone.md"', "cannot be read"),
        ('title = "Which is better?"', "", "no 'title'"),
        ('type = "preference"', 'type = "slider"', "of type 'slider'"),
        ('left = "one"', 'left = "three"', "names the panel 'three'"),
        ("random = true", 'required = "no"', "required = 'no', which is neither true nor false"),
        (
            "random = true",
            WHY + "least_words = 50\nmost_words = 2",
            "least_words = 50 is above most_words = 2",
        ),
        ("random = true", WHY + 'least_words = "few"', "least_words = 'few', which is no number"),
        (
            "[settings]",
            "[setings]",
            r"toml: it has the key 'setings', which means nothing; did you mean settings\?$",
        ),
        (
            "[settings]\nlabels = 3",
            "minimum_seconds = 'five'",
            'has minimum_seconds = "five", where a number from 0 to 3600 is',
        ),
        ("[settings]\nlabels = 3", "settings = 3", "has settings = 3, where a table is expected"),
        ('title = "Which is better?"', "title = 3", "it has title = 3, where a text is expected"),
        (
            'sentences = "{b}"',
            "sentences = 3",
            "the panel 'two' has sentences = 3, where a list of texts is expected",
        ),
        ('text = "{a}"', "", "the panel 'one' has no 'text', a text"),
        (
            'label = "Which?"',
            'lable = "Which?"',
            r"'better' has the key 'lable', which means nothing; did you mean label\?$",
        ),
        ('label = "Which?"', "", "the field 'better' has no 'label', a text"),
        ('label = "Which?"', "label = true", "the field 'better' has label = true, where a text is expected"),
        (
            "random = true",
            "rndom = true",
            r"'better' has the key 'rndom', which means nothing; did you mean random\?$",
        ),
        ("random = true", "when = 3", "the field 'better' has when = 3, where a table is expected"),
        (
            "random = true",
            'when = { feild = "a" }',
            r"'better', when has the key 'feild', .* did you mean field\?$",
        ),
        ("[settings]", "[settings", "is not TOML"),
        ("labels = 3", f"labels = 1{'0' * 5000}", "is not TOML"),
        ("[settings]\nlabels = 3", f"minimum_seconds = 1{'0' * 400}", "a number from 0 to 3600 is expected"),
        ("[settings]\nlabels = 3", 'minimum_seconds = "{a}"', "a number from 0 to 3600 is expected"),
        ('data = "pairs.jsonl"', 'data = "\\u0000"', "which is no file's name"),
        (
            "labels = 3",
            "labels = 3\nconsent = {words = 3}",
            "'settings' has consent = .*, where one value or a list of them is expected",
        ),
        (
            "random = true",
            WHY + 'when = {field = "better", equals = 2026-11-18}',
            "holds what JSON does not have",
        ),
        (
            "random = true",
            WHY.replace('"text"', '"sentences"') + 'panel = "two"\noptions = []\nreason = "requird"',
            'reason = "requird", where required or optional is expected',
        ),
    ],
    ids=[
        "outside",
        "absolute",
        "instructions",
        "title",
        "type",
        "panel",
        "required",
        "words",
        "number",
        "key",
        "seconds",
        "settings",
        "no text",
        "no list",
        "no body",
        "misspelt label",
        "no label",
        "label",
        "misspelt key",
        "when",
        "misspelt when",
        "toml",
        "digits",
        "large",
        "column",
        "data",
        "table",
        "date",
        "reason",
    ],
)
def test_a_project_that_will_not_do_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(EnsueError, match=words):
        KIND.build(written(tmp_path, TOML.replace(old, new)), {}, 0)


def test_a_setting_is_refused_as_it_was_written(tmp_path: Path) -> None:
    preset = KIND.preset(written(tmp_path, TOML.replace("labels = 3", "pay = true")))
    with pytest.raises(EnsueError, match=r"^Invalid pay=true: expected a number\."):
        resolve("custom", settings_of(KIND), preset)
