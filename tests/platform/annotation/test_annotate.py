"""`ensue annotate`, from making a project to exporting it."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ensue.benchmarks.people import export as exports
from ensue.cli.main import app
from ensue.errors import EnsueError
from ensue.platform.annotation import exporting
from ensue.platform.annotation.projects import Projects
from ensue.platform.service import Settings, opened
from tests.platform.annotation.working import people

TOML = """
title = "Rain"
data = "rows.jsonl"
[settings]
labels = 2
bonus = 0.1
[[panels]]
id = "text"
text = "{text}"
[[fields]]
id = "label"
type = "choice"
label = "Does it rain?"
options = [{ value = "yes", label = "Yes" }, { value = "no", label = "No" }]
"""


def run(home: Path, *words: str) -> Any:
    """Run a command and return what it prints as JSON."""
    done = CliRunner().invoke(app, ["annotate", *words, "--json"] + (["--home", str(home)] if home else []))
    if done.exception is not None:
        raise done.exception
    return json.loads(done.stdout)


def test_a_project_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project.toml").write_text(TOML)
    rows = [{"id": f"r{number}", "text": f"Text {number}."} for number in range(6)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = run(home, "create", "custom", "rain", "--data", "project.toml", "--set", "pay=0.2")
    assert (made["state"], made["settings"]["pay"], made["progress"]["work"]["wanted"]) == ("draft", 0.2, 12)
    with pytest.raises(EnsueError, match="already"):
        run(home, "create", "custom", "rain", "--data", "project.toml")
    with pytest.raises(EnsueError, match=r"There is no user 'nobody@example\.org'"):
        run(home, "create", "custom", "two", "--data", "project.toml", "--owner", "nobody@example.org")
    with pytest.raises(EnsueError, match="did you mean labels"):
        run(home, "create", "custom", "two", "--data", "project.toml", "--set", "label=3")
    assert run(home, "open", "rain")["state"] == "open"
    link = run(home, "link", "rain")
    assert "/annotate/rain?key=" in link["link"]
    assert "PROLIFIC_PID" in link["prolific"]
    with opened(Settings(home=home)) as platform:
        with platform.database.reading() as connection:
            project = Projects(platform).find(connection, "rain")
        ada, bob = people(platform, project, 2)
        ada.do_all("yes")
        bob.do_all("no")
        names = ada.now.pseudonym, bob.now.pseudonym
    assert run(home, "list")[0]["progress"]["work"]["answered"] == 12
    assert [one["answers"] for one in run(home, "show", "rain")["people"]] == [6, 6]
    found = run(home, "overview", "rain")
    assert (found["progress"][0]["answers"], found["disagreements"][0]["agreeing"]) == (12, 0.0)
    run(home, "export", "rain")
    export = exports.read("rain.jsonl", kind="custom")
    assert len(list(export.answers())) == 12
    assert len(Path(run(home, "export", "rain", "--csv")["path"]).read_text().splitlines()) == 13
    run(home, "export", "rain", "--history", "--output", "all.jsonl")
    assert len(Path("all.jsonl").read_text().splitlines()) == 12
    run(home, "bonuses", "rain")
    assert Path("rain-bonuses.csv").read_text() == ("participant_id,amount\nworker-0,0.60\nworker-1,0.60\n")
    assert run(home, "exclude", "rain", names[0])["void"] == 6
    assert run(home, "top-up", "rain", "--labels", "3")["settings"]["labels"] == 3
    run(home, "forget", "rain", names[1])
    assert [one["annotator"] for one in run(home, "show", "rain")["people"]] == [names[0]]
    assert run(home, "pause", "rain")["state"] == "paused"
    assert run(home, "close", "rain")["state"] == "closed"
    run(home, "delete", "rain", "--yes")
    with pytest.raises(EnsueError, match="There is no project 'rain'"):
        run(home, "show", "rain")


def test_a_project_of_the_texts_that_come_along_says_so(tmp_path: Path) -> None:
    words = "made of the few texts that come with Ensue, since no data were given (--data)"
    for kind in ("shuffle", "intruder"):
        assert run(tmp_path / "home", "create", kind, f"a-{kind}")["notes"][0] == words
    (tmp_path / "texts").mkdir()
    for number in range(8):
        sentences = [
            f"The {word} of day {number} was long." for word in ("dawn", "noon", "dusk", "walk", "meal")
        ]
        (tmp_path / "texts" / f"{number}.txt").write_text(" ".join(sentences))
    own = run(tmp_path / "home", "create", "shuffle", "own", "--data", str(tmp_path / "texts"))
    assert words not in own["notes"]


def test_files_that_settings_name_are_those_of_whoever_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server at work elsewhere is told where they lie, whatever folder the command was given in."""
    (tmp_path / "story.txt").write_text("The mill stood still. Nobody came.")
    pair = {"text": "A story.", "question": "What?", "better": "good", "worse": "bad", "why": "So."}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
    (tmp_path / "within").mkdir()
    monkeypatch.chdir(tmp_path / "within")
    made = run(
        tmp_path / "home",
        "create",
        "squality",
        "mill",
        "--data",
        "../story.txt",
        "--set",
        "practice=../pairs.jsonl",
    )
    named = Path(made["settings"]["practice"])
    assert named.is_absolute()
    assert named.samefile(tmp_path / "pairs.jsonl")
    assert made["settings"]["systems"] is None
    told = ["--data", "../story.txt", "--set", "practice=none", "--set", "systems=None"]
    assert run(tmp_path / "home", "create", "squality", "none", *told)["settings"]["practice"] is None


def test_what_is_told_can_be_typed_and_counts_are_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project.toml").write_text(TOML)
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": "r", "text": "Text."}) + "\n")
    settings = ("labels=1", "pay=2", "currency=EUR")

    def told(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["annotate", *arguments, "--home", "a home"])
        assert done.exit_code == 0, done.output
        return done.stdout

    options = [part for one in settings for part in ("--set", one)]
    made = told("create", "custom", "rain", "--data", "project.toml", *options)
    assert "rain has 1 item for 1 answer." in made
    assert "--owner" in made
    command = made.split("Open it with: ensue ")[1].splitlines()[0]
    opened_with = CliRunner().invoke(app, shlex.split(command))
    command = opened_with.stdout.split("Print its link with: ensue ")[1]
    assert "/annotate/rain?key=" in CliRunner().invoke(app, shlex.split(command)).stdout
    with opened(Settings(home=tmp_path / "a home")) as platform:
        with platform.database.reading() as connection:
            project = Projects(platform).find(connection, "rain")
        people(platform, project, 1)[0].do_all("yes")
    assert "work           1 item, 1 of 1 answers" in told("show", "rain")
    overview = told("overview", "rain")
    assert "1 of 1 answers to 1 item by 1 person" in overview
    assert " EUR; owed 2.10 EUR, bonuses included" in overview


def test_only_who_keeps_projects_can_be_given_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with opened(Settings(home=home)) as platform:
        for role in ("annotator", "organiser"):
            platform.accounts.add(f"{role}@example.org", role)
    with pytest.raises(EnsueError, match=r"annotator@example\.org is no organiser"):
        run(home, "create", "insertion", "one", "--owner", "annotator@example.org")
    assert run(home, "list") == []
    run(home, "create", "insertion", "one", "--owner", "organiser@example.org")


def test_no_two_columns_of_a_table_have_one_name() -> None:
    row = {
        **dict.fromkeys(exporting.COLUMNS),
        "saved_at": "now",
        "key": {"id": "a"},
        "values": {"seconds": "few", "why": "so"},
    }
    head, cells = csv.reader(exporting.as_csv([row]).splitlines())
    assert len(set(head)) == len(head)
    found = dict(zip(head, cells, strict=True))
    assert (found["seconds"], found["values.seconds"], found["why"]) == ("", "few", "so")


def test_words_for_people(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["annotate", "kinds", "custom"])
    assert "labels=5" in done.stdout
    assert "people per item" in done.stdout
    done = CliRunner().invoke(app, ["annotate", "kinds", "shuffle"])
    assert "block_size=1,2,3,4,5 " in done.stdout  # as --set takes it
    done = CliRunner().invoke(app, ["annotate", "list", "--home", str(tmp_path / "home")])
    assert (done.exit_code, done.stdout) == (0, "")
