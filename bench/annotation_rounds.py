"""A project of each kind of annotation, worked off by simulated people: python bench/annotation_rounds.py [DATA].

Everybody enters by the link, takes work and answers over HTTP on loopback, as a browser does; the clock is moved by
as long as an answer is to take. What they said is exported, put into the benchmark's own format, read back by the
benchmark and scored. DATA is the folder of data sets: with it QAGS's articles are judged as their crowd judged them,
and a SQuALITY story is answered with the published summaries. Without it texts are invented.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from ensue.benchmarks.chapterbreak.annotation import ASPECTS, read_annotations
from ensue.benchmarks.crowd.protocol import PLOT_QUESTION
from ensue.benchmarks.people.export import Export, read
from ensue.benchmarks.people.form import Form
from ensue.benchmarks.people.kind import convert, kind
from ensue.benchmarks.people.numbers import bonuses, overview
from ensue.benchmarks.qags.data.files import read_judgments
from ensue.benchmarks.squality.data import read_stories
from ensue.platform.annotation.projects import Project, Projects, Wanted
from ensue.platform.clock import SetClock
from ensue.platform.service import Platform, Settings, opened
from ensue.platform.web.app import create_app
from ensue.report.table import Column, Table
from ensue.text.documents import read_documents

Values = dict[str, Any]
# What somebody says to a form: of the form, the stage, who they are, and chance.
Answer = Callable[[Form, str, str, random.Random], Values]


@dataclass
class Case:
    """A project to be worked off: of what, by how many, who answer so, and what the benchmark makes of it."""

    kind: str
    data: str | None
    answer: Answer
    people: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    read_back: Callable[[Export, Path], str] = lambda export, folder: ""
    seconds: float = 45.0


class Worker:
    """Somebody at work on a project, over HTTP."""

    def __init__(self, client: httpx.Client, project: Project, id: str, clock: SetClock) -> None:
        self.client, self.project, self.id, self.clock = client, project, id, clock
        body = {
            "key": project.entry_key,
            "external_id": id,
            "study_id": "s",
            "session_id": f"of {id}",
            "consent": True,
        }
        told = self._ask("post", f"projects/{project.name}/enter", 201, body)
        self.pseudonym = told["pseudonym"]
        client.headers["x-csrf-token"] = told["csrf"]
        self.chance = random.Random(id)
        self.saved = 0

    def _ask(self, method: str, path: str, expected: int, body: Any = None, **headers: str) -> Any:
        found = self.client.request(method.upper(), f"/api/v1/{path}", json=body, headers=headers)
        assert found.status_code == expected, f"{path}: {found.status_code} {found.text[:300]}"
        return found.json()

    def work(self, answer: Answer, seconds: float) -> str:
        """Take one item and answer it; return done, waiting or nothing."""
        found = self.client.post(f"/api/v1/projects/{self.project.name}/assignments")
        if found.status_code == 204:
            return "nothing"
        assert found.status_code in (200, 201), found.text[:300]
        taken = found.json()
        if "waiting" in taken:
            return "waiting"
        item = taken["item"]
        values = answer(Form.of(item["form"]), item["stage"], self.id, self.chance)
        spent = seconds * self.chance.lognormvariate(0, 0.3)
        path = f"assignments/{taken['id']}/answer"
        self.clock.move(seconds=spent / 2)
        draft = {
            "values": {},
            "final": False,
            "seq": 1,
            "active_ms": int(500 * spent),
            "elapsed_ms": int(500 * spent),
        }
        self._ask("put", path, 200, draft, **{"Idempotency-Key": f"{taken['id']}-1"})
        self.clock.move(seconds=spent / 2)
        final = {
            "values": values,
            "final": True,
            "seq": 2,
            "active_ms": int(950 * spent),
            "elapsed_ms": int(1000 * spent),
        }
        first = self._ask("put", path, 200, final, **{"Idempotency-Key": f"{taken['id']}-2"})
        # A save that is sent again after a lost answer changes nothing.
        assert self._ask("put", path, 200, final, **{"Idempotency-Key": f"{taken['id']}-2"}) == first
        self.saved += 1
        return "done"

    @property
    def me(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("get", f"projects/{self.project.name}/me", 200)
        return found


def work_off(workers: Sequence[Worker], answer: Answer, seconds: float) -> int:
    """Have everybody work in turn until nobody is given anything; return how many answers were saved."""
    while True:
        told = [one.work(answer, seconds) for one in workers]
        if "done" not in told:
            assert "waiting" not in told, "everybody waits for somebody else"
            return sum(one.saved for one in workers)


def run_case(
    platform: Platform, project: Project, case: Case, client: Callable[[], httpx.Client], folder: Path
) -> tuple[Export, dict[str, Any]]:
    """Have a project worked off and export it over HTTP; return the export and what its organiser is shown."""
    clock = platform.clock
    assert isinstance(clock, SetClock)
    Projects(platform).set_state(project.name, "open")
    workers = [Worker(client(), project, f"{project.name}-{n}", clock) for n in range(case.people)]
    work_off(workers, case.answer, case.seconds)
    owner = platform.accounts.add(f"{project.name}@example.org", "admin")
    token = {"Authorization": f"Bearer {platform.accounts.add_token(owner.id, 'bench')}"}
    asked = client()
    found = asked.get(f"/api/v1/projects/{project.name}/export", headers=token)
    assert found.status_code == 200, found.text[:300]
    path = folder / f"{project.name}.jsonl"
    path.write_text(found.text, "utf-8")
    shown = asked.get(f"/api/v1/projects/{project.name}/bonuses.csv", headers=token)
    assert shown.status_code == 200, shown.text[:300]
    export = read(path, case.kind)
    return export, {"bonuses": shown.text}


# Consistency

ARTICLES = [
    (
        f"The ferry to {place} left at six in the morning. Ruth steered it through thick fog all day. "
        f"Nobody in {place} had seen a ship for a week.",
        [
            (f"The ferry went to {place}.", True),
            ("It was steered by Ruth.", True),
            ("The sun shone all day.", False),
        ],
    )
    for place in ("Lund", "Bremen", "Ystad", "Ghent", "Cork", "Brest", "Varna", "Split")
]


def consistency(folder: Path, real: Path | None) -> Case:
    """Nine judgments in ten are the right ones; copied sentences are always known."""
    if real is None:
        path = folder / "summaries.jsonl"
        rows = [
            {"article": article, "sentences": [text for text, _ in judged]} for article, judged in ARTICLES
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        truth = {text: said for _, judged in ARTICLES for text, said in judged}
        data, settings = str(path), {"training": 1, "controls": 4}
    else:
        data, settings = str(real), {"training": 1, "controls": 8, "set": "cnndm", "limit": 20}
        judged = read_judgments(real / "qags" / "mturk_cnndm.jsonl", "cnndm")
        truth = {one.text: one.consistent for summary in judged for one in summary.sentences}

    def answer(form: Form, stage: str, who: str, chance: random.Random) -> Values:
        article = form.panel("article").text or ""
        said = []
        for sentence in form.panel("summary").sentences or ():
            known = truth.get(sentence)
            right = sentence in article if known is None else known == (chance.random() < 0.9)
            said.append({"value": "yes" if right else "no", "reason": "as the article has it"})
        return {"judgments": said}

    def read_back(export: Export, out: Path) -> str:
        import ensue

        name = str(export.settings["set"])
        run = ensue.run("qags", model="source-overlap", data=str(out), sets=name, output=out / "run")
        row = next(row for row in run.results["metrics"] if row["metric"] == "alpha")
        human = f"human:{out.parent / f'{export.project}.jsonl'}"
        people = ensue.run("qags", model=human, data=str(out), sets=name, output=out / "people")
        held = next(
            one
            for one in people.results["metrics"]
            if one["metric"] == "pearson" and one["settings"]["measure"] == "people"
        )
        return (
            f"ensue run qags: α {row['value']:.3f} over {row['n']} sentences; --model human, one held out: "
            f"r {held['value']:.3f} over {held['n']} summaries"
        )

    return Case("consistency", data, answer, 5, settings, read_back, 60)


# Transitions


def transitions(folder: Path, real: Path | None) -> Case:
    """Chapters whose openings say what changes; each aspect is told right nine times in ten."""
    works: dict[str, list[dict[str, Any]]] = {}
    truth: dict[str, dict[str, str]] = {}
    chance = random.Random(3)
    for work in range(4):
        for number in range(5):
            opening = f"So began part {number} of book {work}, on another morning."
            truth[opening] = {aspect: chance.choice(list(said)) for aspect, said in ASPECTS.items()}
            ending = f"Thus ended what came before part {number}. " * 20
            works.setdefault(f"book{work}", []).append({"ctx": ending, "pos": opening, "negs": ["No."] * 5})
    (folder / "chapterbreak.json").write_text(json.dumps({"ao3": works}))

    def answer(form: Form, stage: str, who: str, chance: random.Random) -> Values:
        right = truth[form.panel("opening").text or ""]
        return {
            aspect: right[aspect] if chance.random() < 0.9 else chance.choice(list(said))
            for aspect, said in ASPECTS.items()
        }

    def read_back(export: Export, out: Path) -> str:
        found = read_annotations(out / "annotations.csv").transitions
        by_opening = {
            f"ao3/{work}/{n}": truth[row["pos"]] for work, rows in works.items() for n, row in enumerate(rows)
        }
        right = [found[id][aspect] == said for id, one in by_opening.items() for aspect, said in one.items()]
        return f"--annotations: {len(found)} transitions, majority right {sum(right) / len(right):.3f}"

    return Case("transitions", str(folder / "chapterbreak.json"), answer, 4, {}, read_back, 90)


def chapterbreak(folder: Path, real: Path | None) -> Case:
    """Chapters whose openings say which part they begin; the next is found two times in three."""
    works: dict[str, list[dict[str, Any]]] = {}
    for work in range(4):
        openings = [
            f"So began part {n} of book {work}, on a morning of {('rain', 'snow')[n % 2]}." for n in range(9)
        ]
        for number in range(3):
            ending = f"Thus ended part {number} of book {work}. " * 30
            row = {"ctx": ending, "pos": openings[number + 1], "negs": openings[number + 2 : number + 7]}
            works.setdefault(f"book{work}", []).append(row)
    (folder / "breaks.json").write_text(json.dumps({"ao3": works}))

    def answer(form: Form, stage: str, who: str, chance: random.Random) -> Values:
        part = int((form.panel("context").text or "").split("ended part ")[1].split()[0])
        shown = {one["value"]: one["label"].partition(": ")[2] for one in form.fields[0].more["options"]}
        right = [value for value, text in shown.items() if text.startswith(f"So began part {part + 1} ")]
        control = sum(text.startswith("So began part ") for text in shown.values()) == 1
        sure = control or chance.random() < 2 / 3
        return {"next": right[0] if sure else chance.choice([one for one in shown if one not in right])}

    settings = {"training": 1, "controls": 1}
    case_data = str(folder / "breaks.json")
    return Case("chapterbreak", case_data, answer, 4, settings, _as_model("chapterbreak"), 90)


# Insertion and ordering


# A control says which sentence of the text each one is, and nobody misses it.
_NUMBERED = re.compile(r"\((\d+)\) ")


def _places() -> dict[str, int]:
    return {text: place for document in read_documents() for place, text in enumerate(document.sentences)}


def insertion(folder: Path, real: Path | None) -> Case:
    """Three in four are put where they were, the others one place off."""
    places = _places()

    def answer(form: Form, stage: str, who: str, chance: random.Random) -> Values:
        asked = form.fields[0]
        if (number := _NUMBERED.match(asked.more["sentence"])) is not None:
            return {"place": int(number[1]) - 1}
        right, last = places[asked.more["sentence"]], len(form.panels[0].sentences or ())
        return {"place": right if chance.random() < 0.75 else right - 1 if right == last else right + 1}

    return Case(
        "insertion", None, answer, 4, {"max_sentences": 8}, _as_model("insertion", max_sentences=8), 40
    )


def ordering(folder: Path, real: Path | None) -> Case:
    """Half of the texts are put right, in the others two neighbours are exchanged."""
    places = _places()

    def answer(form: Form, stage: str, who: str, chance: random.Random) -> Values:
        texts = {entry["id"]: entry["text"] for entry in form.fields[0].more["entries"]}
        numbered = {id: _NUMBERED.match(text) for id, text in texts.items()}
        entries = {id: int(found[1]) if (found := numbered[id]) else places[texts[id]] for id in texts}
        order = sorted(entries, key=lambda id: entries[id])
        if not any(numbered.values()) and chance.random() < 0.5:
            at = chance.randrange(len(order) - 1)
            order[at], order[at + 1] = order[at + 1], order[at]
        return {"order": order}

    return Case(
        "ordering", None, answer, 4, {"max_sentences": 6}, _as_model("ordering", max_sentences=6), 120
    )


def intruder(folder: Path, real: Path | None) -> Case:
    """What does not belong is found three times in four; in untouched texts something is seen one time in five."""
    documents = {tuple(one.sentences[:20]) for one in read_documents()}

    def answer(form: Form, stage: str, who: str, chance: random.Random) -> Values:
        field = form.fields[0]
        shown = {one["value"]: one["label"] for one in field.more["options"]}
        text = form.panel("text").text or ""
        one = max(documents, key=lambda sentences: sum(sentence in text for sentence in sentences))
        wrong = [value for value, label in shown.items() if value != "none" and label != one[int(value)]]
        mixed = [value for value in wrong if sorted(shown[value].split()) == sorted(one[int(value)].split())]
        if mixed:  # a control, which nobody misses
            return {"sentence": mixed[0]}
        if wrong:
            return {"sentence": wrong[0] if chance.random() < 0.75 else "none"}
        return {"sentence": "1" if chance.random() < 0.2 else "none"}

    settings = {"kinds": "random,swapped", "controls": 1, "training": 1}
    return Case("intruder", None, answer, 4, settings, _as_model("intruder", seed=1), 60)


# SQuALITY

QUESTIONS = (
    "What happens to Ilse?",
    "Where does it take place?",
    "Who is the ferryman?",
    "What do the pails mean?",
)
STORY = " ".join(
    f"On day {n} Ilse carried pail {n} to the landing and waited for the ferry of Lund." for n in range(60)
)


def squality(folder: Path, real: Path | None) -> Case:
    """Four writers, reviewers who mostly see alike who is better, and ratings that follow."""
    path = folder / "test.jsonl"
    written: dict[str, list[str]] = {}
    questions: Sequence[str] = (PLOT_QUESTION, *QUESTIONS)
    if real is None:
        row: dict[str, Any] = {"metadata": {"passage_id": "9001"}, "document": STORY}
        row["questions"] = [
            {
                "question_number": 1,
                "question_text": PLOT_QUESTION,
                "responses": [{"worker_id": "1", "response_text": "x"}],
            }
        ]
    else:
        with (real / "squality" / "v1" / "dev.jsonl").open(encoding="utf-8") as lines:
            row = json.loads(lines.readline())
        path.write_text(json.dumps(row) + "\n")
        (story,) = read_stories(path)
        questions = [one.text for one in story.questions]
        for place in range(4):
            written[f"{place}"] = [one.responses[place].text for one in story.questions]
    path.write_text(json.dumps(row) + "\n")

    def texts(who: str) -> list[str]:
        """Invented, with whose it is in front; or those of the published writer of that number."""
        if written:
            return written[who.rpartition("-")[2]]
        return [f"{who} holds that she waits, " * 20 for _ in questions]

    def quality(text: str) -> int:
        known = [who for who, given in written.items() if text in given]
        return int(known[0] if known else text.split()[0].rpartition("-")[2])

    def answer(form: Form, stage: str, who: str, chance: random.Random) -> Values:
        if stage == "questions":
            return {f"question{n}": text for n, text in enumerate(questions[1:], 2)}
        if stage == "writing":
            return {f"answer{n}": text for n, text in enumerate(texts(who), 1)}
        if stage == "feedback":
            return {"read": "yes"}
        good = {
            one.id: quality(one.text or "") + chance.gauss(0, 0.8) for one in form.panels if one.id != "story"
        }
        if stage == "reviewing":
            ordered = sorted(good, key=lambda letter: good[letter])
            marks = {
                f"marks_{letter}": [{"start": 0, "end": 4, "label": "typo", "note": "why?"}]
                for letter in ordered[-1:]
            }
            said = {
                f"feedback_{letter}": f"Say more of place {place}." for place, letter in enumerate(ordered)
            }
            return {"rank": {letter: place for place, letter in enumerate(ordered, 1)}, **marks, **said}
        points = {letter: max(1, min(100, round(90 - 15 * one))) for letter, one in good.items()}
        return {
            f"{name}_{letter}": one
            for letter, one in points.items()
            for name in ("correctness", "coverage", "overall")
        }

    def read_back(export: Export, out: Path) -> str:
        import ensue

        (story,) = read_stories(out / "test.jsonl")
        if written:
            given = [sorted(one.references) for one in story.questions]
            assert given == [sorted(texts[n] for texts in written.values()) for n in range(len(questions))]
        run = ensue.run(
            "squality", model="human", data=str(out), metrics="rouge", statistics="no", output=out / "run"
        )
        rouge = next(row for row in run.results["metrics"] if row["metric"] == "rougeL")
        rated = ensue.run(
            "squality/human-eval", model="human", data=str(out), metrics="rouge", output=out / "rated"
        )
        points = next(row for row in rated.results["metrics"] if row["metric"] == "overall")
        agreed = next(row for row in kind("squality").scores(export) if row["metric"] == "agreement")
        cost = json.loads((out / "rounds.json").read_text())[0]["cost_per_summary"]
        return (
            f"ensue run squality: ROUGE-L {rouge['value']:.3f}; human-eval: overall {points['value']:.2f}; "
            f"pairs agree {agreed['value']:.2f}; ${cost:.2f} a summary"
        )

    stages = "questions,writing,reviewing,rating"
    return Case("squality", str(path), answer, 4, {"stages": stages}, read_back, 900)


# The Shuffle Test


def shuffle(folder: Path, real: Path | None) -> Case:
    """The original is found nine times in ten, and beside mixed words always."""
    originals = {" ".join(document.sentences[:20]) for document in read_documents()}

    def answer(form: Form, stage: str, who: str, chance: random.Random) -> Values:
        right = next(side for side in ("left", "right") if form.panel(side).text in originals)
        other = form.panel("right" if right == "left" else "left").text or ""
        # Words that are mixed leave no sentence whole.
        plain = not any(sentence in other for document in read_documents() for sentence in document.sentences)
        sure = plain or chance.random() < 0.9
        return {"original": right if sure else "right" if right == "left" else "left"}

    return Case(
        "shuffle",
        None,
        answer,
        4,
        {"training": 1, "controls": 2, "block_size": "1,2"},
        _as_model("shuffle"),
        50,
    )


MEASURES = ("accuracy", "distance", "kendall_tau", "r3", "r3_each", "hit_rate_at", "false_alarms")


def _as_model(benchmark: str, **settings: Any) -> Callable[[Export, Path], str]:
    """Read an export back as people who are a model of a benchmark."""

    def read_back(export: Export, out: Path) -> str:
        import ensue

        human = f"human:{out / f'{export.project}.jsonl'}"
        data = None if export.source == "bundled" else export.source
        run = ensue.run(benchmark, model=human, data=data, output=out / "run", **settings)
        rows = [row for row in run.results["metrics"] if row["metric"] in MEASURES]
        shown = ", ".join(
            f"{row['metric']} {row['value']:.3f}"
            + "".join(f" at {key} {value}" for key, value in row["settings"].items())
            for row in rows
            if not {"category", "position"} & row["settings"].keys()
            and row["task"].partition("/")[0]
            in ("ao3", benchmark.partition("/")[0], benchmark.rpartition("/")[2])
            and "/" not in row["task"]
        )
        return f"ensue run {benchmark} --model human: {shown}"

    return read_back


# Classification


def classification(folder: Path, real: Path | None) -> Case:
    """RTE: seventeen in twenty are told right."""
    data = folder / "superglue" if real is None else real / "superglue"
    truth: dict[str, str] = {}
    if real is None:
        (data / "RTE").mkdir(parents=True)
        for split, count in (("train", 12), ("val", 12)):
            lines = []
            for n in range(count):
                label = ("entailment", "not_entailment")[n % 2]
                hypothesis = f"The mill of {split} {n} {'burned' if n % 2 == 0 else 'stood'}."
                row = {"premise": f"In spring the mill of {split} {n} burned.", "hypothesis": hypothesis}
                lines.append(json.dumps({**row, "label": label, "idx": n}) + "\n")
            (data / "RTE" / f"{split}.jsonl").write_text("".join(lines))
    for split in ("train", "val"):
        for line in (data / "RTE" / f"{split}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            truth[row["premise"] + row["hypothesis"]] = row["label"]

    def answer(form: Form, stage: str, who: str, chance: random.Random) -> Values:
        right = truth["".join(panel.text or "" for panel in form.panels)]
        other = next(label for label in ("entailment", "not_entailment") if label != right)
        return {"label": right if chance.random() < 0.85 else other}

    settings = {"task": "superglue/RTE", "examples": 12, "training": 2, "qualification": 2, "labels": 3}
    return Case("classification", str(data), answer, 7, settings, _as_model("superglue/RTE"), 25)


LABELS = ("entailment", "neutral", "contradiction")


def diagnostic(folder: Path, real: Path | None) -> Case:
    """GLUE's diagnostic, by six people the first right nine times in ten, the last four times."""
    data = folder / "glue" if real is None else real / "glue"
    file = data / "diagnostic" / "diagnostic-full.tsv"
    if real is None:
        tags = ("Lexical Semantics", "Predicate-Argument Structure", "Logic", "Knowledge", "Domain")
        rows = [[*tags, "Premise", "Hypothesis", "Label"]]
        for n in range(48):
            statement = f"The mill of village {n} {('burned', 'was old', 'stood')[n % 3]}."
            tagged = ["", "", "Negation" if n % 3 == 2 else "", "Common Sense", "News"]
            rows.append([*tagged, f"In spring the mill of village {n} burned.", statement, LABELS[n % 3]])
        file.parent.mkdir(parents=True)
        file.write_text("".join("\t".join(row) + "\n" for row in rows))
    lines = [line.split("\t") for line in file.read_text("utf-8").splitlines()[1:]]
    truth = {(line[5], line[6]): line[7] for line in lines}

    def answer(form: Form, stage: str, who: str, chance: random.Random) -> Values:
        premise, hypothesis = (panel.text or "" for panel in form.panels)
        right = truth[premise, hypothesis]
        if chance.random() < 0.9 - 0.1 * int(who.rpartition("-")[2]):
            return {"label": right}
        return {"label": chance.choice([label for label in LABELS if label != right])}

    settings = {"task": "glue/diagnostic", "examples": 48, "labels": 6}
    settings |= {"training": 0, "qualification": 0, "controls": 0}
    return Case("classification", str(data), answer, 6, settings, _as_model("glue/diagnostic"), 25)


# Anybody's own

PROJECT = """
title = "Which would you rather read?"
instructions = "Read **both**."
data = "pairs.jsonl"
[settings]
labels = 3
[[panels]]
id = "first"
text = "{one}"
[[panels]]
id = "second"
text = "{two}"
[[fields]]
id = "better"
type = "preference"
label = "Which is better?"
left = "first"
right = "second"
random = true
[[fields]]
id = "how"
type = "scale"
label = "How sure are you?"
least = 1
most = 5
"""


def custom(folder: Path, real: Path | None) -> Case:
    """Pairs of which the longer one is mostly preferred."""
    (folder / "project.toml").write_text(PROJECT)
    rows = [
        {"id": f"{n}", "one": "It rained. " * (n % 4 + 1), "two": "It rained. " * (4 - n % 4)}
        for n in range(8)
    ]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def answer(form: Form, stage: str, who: str, chance: random.Random) -> Values:
        asked = form.fields[0]
        left, right = (len(form.panel(asked.more[side]).text or "") for side in ("left", "right"))
        longer = "left" if left > right else "right"
        other = "right" if longer == "left" else "left"
        return {"better": longer if chance.random() < 0.9 else other, "how": chance.randint(2, 5)}

    return Case("custom", str(folder / "project.toml"), answer, 4, {}, lambda export, out: "", 20)


CASES: Mapping[str, Callable[[Path, Path | None], Case]] = {
    "custom": custom,
    "shuffle": shuffle,
    "classification": classification,
    "diagnostic": diagnostic,
    "consistency": consistency,
    "transitions": transitions,
    "chapterbreak": chapterbreak,
    "insertion": insertion,
    "ordering": ordering,
    "intruder": intruder,
    "squality": squality,
}


@contextmanager
def listening(platform: Platform) -> Iterator[str]:
    """Serve a platform on loopback from a thread of this process, whose clock is ours to move."""
    import uvicorn

    config = uvicorn.Config(
        create_app(platform), host="127.0.0.1", port=0, log_level="warning", lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def row_of(case: Case, export: Export, read_back: str, bonus: str) -> list[str]:
    """A line of the table."""
    shown = overview(export, kind(case.kind))
    alphas = [
        f"{one.field} {one.agreement.alpha.value:.2f}"
        for one in shown.agreement
        if one.agreement.alpha is not None and one.agreement.alpha.value == one.agreement.alpha.value
    ][:4]
    answers = sum(one.answers for one in shown.progress)
    median = sorted(one.seconds for one in export.answers())[answers // 2]
    owed = sum(bonuses(export, kind(case.kind)).values()) / 100
    assert len(bonus.splitlines()) == 1 + len(bonuses(export, kind(case.kind)))
    per_hour = "–" if not shown.pay_per_hour else f"{shown.pay_per_hour:.2f}"
    items = len({one.item for one in export.answers()})
    return [
        case.kind,
        f"{case.people}",
        f"{items}",
        f"{answers}",
        f"{median:.0f}",
        ", ".join(alphas) or "–",
        per_hour,
        f"{owed:.2f}",
        read_back,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, help="the folder of data sets, for real texts")
    parser.add_argument("--kinds", default=",".join(CASES))
    given = parser.parse_args()
    words = ("kind", "α by field", "read back")
    headings = (
        "kind",
        "people",
        "items",
        "answers",
        "median s",
        "α by field",
        "$ an hour",
        "bonuses $",
        "read back",
    )
    rows = []
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        settings = Settings(home=root / "home", clock=SetClock(datetime(2026, 11, 17, tzinfo=UTC)))
        with opened(settings) as platform, listening(platform) as url:
            for name in given.kinds.split(","):
                folder = root / name
                folder.mkdir()
                case = CASES[name](folder, given.data)
                wanted = Wanted(f"{name}-round", case.kind, case.data, dict(case.settings), 1)
                project, _ = Projects(platform).create(wanted)
                export, told = run_case(platform, project, case, lambda: httpx.Client(base_url=url), folder)
                has_format = name in ("consistency", "transitions", "squality")
                out = folder / "out" if has_format else folder
                if has_format:
                    convert(folder / f"{project.name}.jsonl", out)
                rows.append(row_of(case, export, case.read_back(export, out), told["bonuses"]))
    table = Table([Column(heading, words=heading in words) for heading in headings])
    for row in rows:
        table.add(*row)
    print(table.to_markdown())
    print(f"{time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
