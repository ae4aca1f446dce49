"""A whole round of each kind of annotation in a real browser, by several people at once, from the link to the export.

Whatever a form asks is answered with mouse and keys; people take turns, so that stages follow one another as they do
when many are at work. Screenshots are left in `build/screenshots`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from ensue.benchmarks.chapterbreak.annotation import read_annotations
from ensue.benchmarks.people.export import read
from ensue.benchmarks.people.kind import convert
from ensue.benchmarks.qags.data.files import read_judgments
from ensue.benchmarks.squality.data import read_stories
from ensue.benchmarks.squality.human_eval import FILE as EVALUATION
from ensue.platform.annotation.answering import Answering
from ensue.platform.annotation.projects import Wanted
from ensue.platform.service import Settings, opened
from tests.platform.processes import serving
from tests.platform.web.test_annotating import Worker

STORY = " ".join(
    f"On day {n} Ilse carried pail {n} down to the landing, and waited there for the ferry."
    for n in range(40)
)


class Round(NamedTuple):
    """A kind to be worked off: its data, its settings, how many people, and how many answers that makes."""

    kind: str
    data: Callable[[Path], str | None]
    settings: Mapping[str, Any]
    people: int
    answers: int


def _articles(folder: Path) -> str:
    rows = [
        {
            "article": f"The ferry to {place} left at six in the morning. Ruth steered it through the fog all day,"
            " and nobody on the shore had seen a ship for a week. The council had promised a new pier by spring.",
            "sentences": [f"The ferry went to {place}.", "The sun shone all day."],
        }
        for place in ("Lund", "Cork", "Ghent", "Split")
    ]
    return _written(folder / "summaries.jsonl", rows)


def _chapters(folder: Path) -> str:
    later = ("The snow lay on the pails", "Her brother wrote from Lund", "Nobody spoke of the ferry any more")
    later += ("The landing was sold in spring", "When the ice broke she was old")
    chapters = [
        {
            "ctx": STORY,
            "pos": f"In the morning of part {n} nobody was there, and the ferry lay empty at the landing.",
            "negs": [f"{text}, in part {n + 1}." for text in later],
        }
        for n in range(2)
    ]
    path = folder / "chapterbreak.json"
    path.write_text(json.dumps({"ao3": {"book": chapters}}))
    return str(path)


def _documents(folder: Path) -> str:
    rows = [
        {
            "id": place,
            "text": f"The ferry left {place} before dawn. Its lamps were lit, and the deck was wet with spray. Two"
            " fishermen stood at the rail and watched the harbour grow small. By noon they had reached the mainland."
            " There the men carried their baskets ashore.",
        }
        for place in ("Lund", "Cork")
    ]
    return _written(folder / "documents.jsonl", rows)


def _long_documents(folder: Path) -> str:
    rows = [
        {
            "id": place,
            "text": f"The ferry left {place} before dawn. Its lamps were lit, and the deck was wet. Two fishermen"
            f" stood at the rail and watched {place} grow small. By noon they had reached the mainland. There the men"
            f" carried their baskets ashore. In {place} nobody had seen them go. The bell of the church rang at six.",
        }
        for place in ("Lund", "Cork")
    ]
    return _written(folder / "documents.jsonl", rows)


def _stories(folder: Path) -> str:
    questions = [
        {
            "question_number": 1,
            "question_text": "What is the plot of the story?",
            "responses": [{"worker_id": "1", "response_text": "x"}],
        }
    ]
    row = {"metadata": {"passage_id": "9001"}, "document": STORY, "questions": questions}
    return _written(folder / "test.jsonl", [row])


def _responses(folder: Path) -> str:
    """Write a pair of responses for practice."""
    pair = {
        "text": STORY,
        "question": "Who waits?",
        "better": "Ilse waits.",
        "worse": "A ship.",
        "why": "It is Ilse.",
    }
    return _written(folder / "pairs.jsonl", [pair])


def _pairs(folder: Path) -> str:
    _written(folder / "pairs.jsonl", [{"one": f"Ferry {n}.", "two": f"Mill {n}."} for n in range(2)])
    (folder / "project.toml").write_text(_CUSTOM)
    return str(folder)


def _written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def _entailment(folder: Path) -> str:
    (folder / "RTE").mkdir()
    for name in ("train", "val"):
        rows = [
            {
                "premise": f"Mara of house {n} sold her boat to Ruth in the spring, and has not been at sea since.",
                "hypothesis": f"Ruth has a boat from house {n}.",
                "label": "entailment",
                "idx": n,
            }
            for n in range(4)
        ]
        _written(folder / "RTE" / f"{name}.jsonl", rows)
    return str(folder)


_CUSTOM = """
title = "Which is better?"
data = "pairs.jsonl"
[[panels]]
id = "a"
text = "{one}"
[[panels]]
id = "b"
text = "{two}"
[[fields]]
id = "better"
type = "preference"
label = "Which is better?"
left = "a"
right = "b"
[[fields]]
id = "kinds"
type = "choices"
label = "What is in them?"
options = [{value = "water", label = "Water"}, {value = "wood", label = "Wood"}]
[[fields]]
id = "how"
type = "scale"
label = "How sure are you?"
least = 1
most = 5
[[fields]]
id = "why"
type = "text"
label = "Why?"
"""
# People answer as fast as a test does, and as the robot below does: neither is held against them.
_PATIENT = {"labels": 2, "minimum_seconds": 0.0, "most_missed": 9, "bar": "none"}
_RTE = {"task": "superglue/RTE", "examples": 2, "training": 1, "qualification": 1}
_STAGES = {"stages": "questions,writing,reviewing,rating", "own_questions": 1, "least_words": 5}
ROUNDS = {
    "shuffle": Round("shuffle", _documents, {**_PATIENT, "training": 1, "controls": 0}, 2, 2),
    "classification": Round("classification", _entailment, {**_PATIENT, **_RTE}, 2, 4),
    "consistency": Round("consistency", _articles, {**_PATIENT, "training": 1, "controls": 1}, 2, 8),
    "transitions": Round("transitions", _chapters, _PATIENT, 2, 4),
    "chapterbreak": Round("chapterbreak", _chapters, {**_PATIENT, "training": 0, "controls": 1}, 2, 2),
    "intruder": Round(
        "intruder", _long_documents, {**_PATIENT, "training": 1, "controls": 0, "kinds": "random"}, 2, 2
    ),
    "insertion": Round("insertion", _documents, _PATIENT, 2, 2),
    "ordering": Round("ordering", _documents, _PATIENT, 2, 2),
    "custom": Round("custom", _pairs, _PATIENT, 2, 4),
    "squality": Round("squality", _stories, {**_PATIENT, **_STAGES}, 4, 25),
}
NAMES = [pytest.param(name, marks=pytest.mark.slow if name == "squality" else ()) for name in sorted(ROUNDS)]


@pytest.fixture(scope="module")
def links(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """A server on each database with a project of each kind; the address, and the link of each."""
    home = tmp_path_factory.mktemp("rounds") / "home"
    paths = {}
    with opened(Settings(home=home, database=module_url)) as platform:
        part = Answering(platform)
        owner = platform.accounts.add("owner@example.org", "admin")
        paths["token"] = platform.accounts.add_token(owner.id, "test")
        for name, one in ROUNDS.items():
            folder = tmp_path_factory.mktemp(name)
            settings = {"completion_code": "DONE", **one.settings}
            if name == "squality":
                settings["practice"] = _responses(folder)
            wanted = Wanted(name, one.kind, one.data(folder), settings)
            part.projects.create(wanted, by=owner.id)
            paths[name] = part.projects.set_state(name, "open").path
    with serving(home, "--database", module_url) as (_, url):
        yield url, paths


# Answering whatever is asked


def fill(page: Page, worker: Worker, who: int) -> str:
    """Answer the form on the page; return its stage."""
    (now,) = (one for one in worker.get(f"projects/{worker.name}/assignments") if one["state"] == "leased")
    item = worker.get(f"assignments/{now['id']}")["item"]
    for field in item["form"]["fields"]:
        box = page.locator(f"[data-field={json.dumps(field['id'])}]")
        if box.is_visible():
            _FILL[field["type"]](page, box, field, who)
    return str(item["stage"])


def _choose(page: Page, box: Locator, field: Mapping[str, Any], who: int) -> None:
    inputs = box.locator(".option")
    inputs.nth(who % inputs.count()).click()


def _scale(page: Page, box: Locator, field: Mapping[str, Any], who: int) -> None:
    if box.get_by_role("spinbutton").count():
        box.get_by_role("spinbutton").fill(str(field["most"] - who))
    else:
        _choose(page, box, field, who)


_NAMES = ("Ada", "Bob", "Cleo", "Dan")


def _write(page: Page, box: Locator, field: Mapping[str, Any], who: int) -> None:
    said = f"{_NAMES[who % 4]} holds that a woman is kept by the water because she hopes for a boat."
    box.get_by_role("textbox").fill("Why does she wait there?" if "question" in field["id"] else said)


def _mark(page: Page, box: Locator, field: Mapping[str, Any], who: int) -> None:
    page.locator(f"[data-panel={json.dumps(field['panel'])}] .text").focus()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Control+Shift+ArrowRight")
    box.locator(".label").first.click()
    expect(box.locator(".spans li")).to_have_count(1)


def _order(page: Page, box: Locator, field: Mapping[str, Any], who: int) -> None:
    box.locator(".handle").first.press("ArrowDown")


def _place(page: Page, box: Locator, field: Mapping[str, Any], who: int) -> None:
    box.get_by_role("radio").nth(who).click()


def _rank(page: Page, box: Locator, field: Mapping[str, Any], who: int) -> None:
    for number, row in enumerate(box.locator(".rank li").all()):
        row.locator(".option").nth(number).click()


def _judge(page: Page, box: Locator, field: Mapping[str, Any], who: int) -> None:
    for sentence in box.locator(".one").all():
        sentence.click()
        box.locator(".option").first.click()
        if field.get("reason"):
            box.get_by_role("textbox").fill("as it says")


_FILL: dict[str, Callable[[Page, Locator, Mapping[str, Any], int], None]] = {
    "choice": _choose,
    "choices": _choose,
    "preference": _choose,
    "scale": _scale,
    "text": _write,
    "spans": _mark,
    "order": _order,
    "place": _place,
    "rank": _rank,
    "sentences": _judge,
}


class Person:
    """Somebody who does one item after the other."""

    def __init__(self, browser: Browser, address: str, path: str, number: int) -> None:
        self.worker, self.number, self.done = Worker(browser, address, path), number, 0
        self.page = self.worker.enter(f"worker-{number}")
        self.seen: set[str] = set()

    def work(self) -> bool:
        """Do what there is to do now; return whether there was something."""
        page = self.page
        if not page.locator(".question").first.is_visible():
            page.reload()
            expect(page.locator("#stage > *").first).to_be_visible()
        if not page.locator(".question").first.is_visible():
            return False
        stage = fill(page, self.worker, self.number)
        if stage not in self.seen:
            self.seen.add(stage)
            if not self.number:
                self.worker.visit.look_at("-".join(filter(None, ("round", self.worker.name, stage))))
        page.locator(".question").first.evaluate("element => { element.dataset.old = '1'; }")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".feedback, #stage:not(:has([data-old]))").first).to_be_visible()
        if page.locator(".feedback").is_visible():
            page.get_by_role("button", name="Go on").click()
        expect(page.locator("[data-old]")).to_have_count(0)
        self.done += 1
        return True


def _stories_back(folder: Path) -> None:
    (story,) = read_stories(folder / "test.jsonl")
    assert [len(question.responses) for question in story.questions] == [4, 4]
    (row,) = (
        json.loads(line) for line in (folder / "human-eval" / EVALUATION).read_text("utf-8").splitlines()
    )
    given = [one["reviews"] for question in row["questions"].values() for one in question.values()]
    assert [len(reviews) for reviews in given] == [3] * 8
    (outcome,) = json.loads((folder / "rounds.json").read_text("utf-8"))
    assert len(outcome["bonuses"]) == 4


def _judgments_back(folder: Path) -> None:
    (file,) = folder.rglob("*.jsonl")
    judged = read_judgments(file, "own")
    assert [len(sentence.responses) for one in judged for sentence in one.sentences] == [2] * 8


def _transitions_back(folder: Path) -> None:
    assert len(read_annotations(folder / "annotations.csv").transitions) == 2


# What benchmarks make of an export that is in their own format.
READ_BACK = {"squality": _stories_back, "consistency": _judgments_back, "transitions": _transitions_back}


@pytest.mark.parametrize("name", NAMES)
def test_a_round_in_the_browser(
    chromium: Browser, links: tuple[str, dict[str, str]], name: str, tmp_path: Path
) -> None:
    address, paths = links
    one = ROUNDS[name]
    people = [Person(chromium, address, paths[name], number) for number in range(one.people)]
    while sum(person.work() for person in people):
        pass
    for person in people:
        expect(person.page.locator("#code")).to_have_text("DONE")
        assert person.worker.visit.complaints == []
    asked = people[0].page.request
    token = {"Authorization": f"Bearer {paths['token']}"}
    found = asked.get(f"/api/v1/projects/{name}/export", headers=token)
    (tmp_path / "export.jsonl").write_text(found.text(), "utf-8")
    export = read(tmp_path / "export.jsonl", one.kind)
    assert sum(person.done for person in people) == len(export.records)
    assert len(list(export.answers())) == one.answers
    if name == "squality":
        bonuses = asked.get(f"/api/v1/projects/{name}/bonuses.csv", headers=token).text()
        assert bonuses.startswith("participant_id,amount\nworker-")
    if name in READ_BACK:
        convert(tmp_path / "export.jsonl", tmp_path / "own")
        READ_BACK[name](tmp_path / "own")
    for person in people:
        person.worker.context.close()
