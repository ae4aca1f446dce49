"""Annotation projects of kind `squality`: stories are asked about, answered, reviewed and rated by stages (A.4).

One writer composes the questions, four answer all of them, each reviews the answers of the three others, which come
back to their writers, and may rate them. A stage of a story begins when the one before is complete. Without the
writing, references and systems' summaries of the data are rated by anybody.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ensue.benchmarks import settings as read
from ensue.benchmarks.base import Setting, content_of
from ensue.benchmarks.crowd.protocol import PLOT_QUESTION, QUESTIONS, WRITERS, Rates
from ensue.benchmarks.crowd.writing import LEAST_WORDS, LONGEST_COPY, MOST_WORDS
from ensue.benchmarks.people.export import Export, Record
from ensue.benchmarks.people.form import Field, Form, Panel, options
from ensue.benchmarks.people.kind import (
    Built,
    Done,
    Earned,
    Files,
    Judged,
    Plain,
    Reads,
    WorkItem,
    between,
    instructions,
)
from ensue.benchmarks.squality import round_files, rounds
from ensue.benchmarks.squality.data import split_name
from ensue.benchmarks.squality.human_eval import PROPERTIES
from ensue.benchmarks.squality.practice import practice_items
from ensue.benchmarks.squality.rounds import (
    FEEDBACK,
    QUESTIONING,
    RATING,
    REVIEWING,
    STAGES,
    WRITING,
    Source,
    read_sources,
    reviews_in,
    systems_summaries,
)
from ensue.errors import EnsueError
from ensue.report.results import MetricRow

_LETTERS = "abcdefghijklmnop"
_ASKED = {
    "correctness": "how free of factual errors is it?",
    "coverage": "how much of what matters for the question is in it?",
    "overall": "how good is it in all?",
}
_RATES = Rates()


class Plan(NamedTuple):
    """What the stages of a story need to know, kept with every item of it."""

    stages: tuple[str, ...]
    writers: int
    own_questions: int
    words: tuple[int, int]
    longest_copy: int
    seed: int

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Plan:
        stages, words = tuple(found["stages"]), tuple(found["words"])
        counts = (found["writers"], found["own_questions"], words, found["longest_copy"], found["seed"])
        return cls(stages, *counts)


class Answer(NamedTuple):
    """What is shown of an answer, and whose it is: a writer or a system."""

    of: str
    text: str


_RATERS = """
You will read a short story, which takes 20 to 40 minutes, and judge what was answered to questions about it. Your
judgments will be published for research, under a pseudonym.
"""


class Squality(Plain):
    """The kind `squality`."""

    name = "squality"
    about = "questions about stories, answers, reviews, ratings, in stages (SQuALITY)"
    reads = Reads("SQuALITY's folder or a file of it, or any stories: text files, or JSON lines with `text`.")
    follows = True
    settings: Mapping[str, Setting] = {
        "stages": Setting(
            [QUESTIONING, WRITING, REVIEWING],
            f"which of {', '.join(STAGES)}; without questions, those of the data",
            read.many(read.one_of(*STAGES)),
        ),
        "writers": Setting(WRITERS, "who answer all questions of a story, three or more", read.whole(3)),
        "own_questions": Setting(
            QUESTIONS - 1, "questions to compose besides that for the plot", read.whole()
        ),
        "least_words": Setting(LEAST_WORDS, "words of the shortest answer", read.whole()),
        "most_words": Setting(MOST_WORDS, "words of the longest answer", read.whole()),
        "longest_copy": Setting(LONGEST_COPY, "words in a row that may be the story's", read.whole()),
        "systems": Setting(
            None,
            "rating alone: JSON lines of id, system and summary, to be rated beside people's",
            read.optional(read.file),
        ),
        "practice": Setting(
            None,
            "JSON lines of text, question, better, worse and why: which response is better, with feedback",
            read.optional(read.file),
        ),
        "qualification": Setting(
            0, "how many of them are qualification, judged by bar, instead of practice", read.whole(0)
        ),
        "writing_pay": Setting(float(_RATES.writing), "paid for the answers on a story", between(0, 10_000)),
        "reviewing_pay": Setting(
            float(_RATES.reviewing), "paid for the reviews on a story", between(0, 10_000)
        ),
        "rating_pay": Setting(float(_RATES.reviewing), "paid for the ratings on a story", between(0, 10_000)),
        "version": Setting(None, "the data's: v1, v1-3 …", read.optional(read.text)),
        "split": Setting("test", "train, dev or test", split_name),
        "limit": Setting(None, "only the first N stories", read.optional(read.whole())),
    }
    # Three raters, as in the paper; a writer needs hours, of which many may be spent reading.
    defaults: Mapping[str, Any] = {"labels": 3, "control_rate": 0.0, "lease_minutes": 240, "currency": "USD"}

    def build(self, data: str | None, settings: Mapping[str, Any], seed: int) -> Built:
        stages = _stages(settings)
        sources = read_sources(data, settings)
        plan = Plan(
            stages,
            settings["writers"],
            settings["own_questions"],
            (settings["least_words"], settings["most_words"]),
            settings["longest_copy"],
            seed,
        )
        if plan.writers > len(_RATES.places):
            raise EnsueError(
                f"There are bonuses for {len(_RATES.places)} writers of a story, not for {plan.writers}."
            )
        items = practice_items(settings, seed)
        if stages == (RATING,):
            items += [
                item for source in sources for item in _rated_from_data(source, settings["systems"], plan)
            ]
        else:
            for source in sources:
                asked = QUESTIONING not in stages
                items += (
                    _writing(source.id, source.text, source.asked(), plan)
                    if asked
                    else [_questioning(source, plan)]
                )
        title = "Rate answers about a story" if stages == (RATING,) else "Answer questions about a story"
        return Built(title, _page(title, plan), items, str(data))

    def follow(self, group: str, done: Sequence[Done]) -> Sequence[WorkItem]:
        """Return all items that the answers on a story allow for, those that are there already among them."""
        if not done or "plan" not in done[0].secret:
            return ()
        plan, story = Plan.of(done[0].secret["plan"]), done[0].form.panel("story").text or ""
        return list(_following(group, story, plan, done))

    def files(self, export: Export, data: str | None) -> Files:
        """Return stories, answers and ratings in SQuALITY's own format, and what that has no place for beside it."""
        where = export.data(data)
        sources = read_sources(where, {**export.settings, "limit": None})
        if tuple(export.settings["stages"]) != (RATING,):
            return round_files.files(export, sources)
        # What was rated is the data's; the project made anew says which letter stood for what.
        built = self.build(where, {**export.settings, "practice": None, "qualification": 0}, export.seed)
        texts = {
            (item.key["id"], letter): item.form.panel(letter).text or ""
            for item in built.items
            for letter in item.key["of"]
        }
        return round_files.rating_files(export, sources, texts)

    def scores(self, export: Export) -> list[MetricRow]:
        return rounds.scores(export)

    def earned(self, export: Export) -> Mapping[str, Earned]:
        return rounds.earned(export)

    def judged(self, record: Record) -> Iterable[Judged]:
        return rounds.judged(record)


def _page(title: str, plan: Plan) -> str:
    """Return the instructions of the stages that there are, with the limits of this project."""
    opening, *sections = instructions(__file__, "squality").split("\n## ")
    opening = _RATERS if plan.stages == (RATING,) else opening.partition("\n")[2]
    chosen = [text for stage, text in zip(STAGES, sections, strict=True) if stage in plan.stages]
    least, most = plan.words
    page = "\n## ".join([f"# {title}\n{opening}", *chosen])
    return page.replace("75 to 500 words", f"{least:,} to {most:,} words")


def _stages(settings: Mapping[str, Any]) -> tuple[str, ...]:
    chosen = [stage for stage in STAGES if stage in settings["stages"]]
    if WRITING not in chosen and chosen != [RATING]:
        raise EnsueError(f"Stages without {WRITING} can only be {RATING}, not {', '.join(chosen)}.")
    if settings["systems"] is not None and chosen != [RATING]:
        raise EnsueError("Systems are rated in a project of its own; set stages=rating.")
    if settings["least_words"] > settings["most_words"]:
        raise EnsueError(
            f"No answer has {settings['least_words']} words at least and {settings['most_words']} at most."
        )
    return tuple(chosen)


def _following(group: str, story: str, plan: Plan, done: Sequence[Done]) -> Iterator[WorkItem]:
    by_stage = {stage: [one for one in done if one.stage == stage] for stage in (*STAGES, FEEDBACK)}
    written = by_stage[WRITING]
    for one in by_stage[QUESTIONING][:1]:
        asked = [PLOT_QUESTION, *(one.values[f"question{n}"].strip() for n in _numbers(plan.own_questions))]
        yield from _writing(group, story, asked, plan, one.annotator)
        written = [one for one in written if one.key["questions"] == asked]
    if len(written) < plan.writers:
        return
    asked = list(written[0].key["questions"])
    answers = {one.annotator: [one.values[f"answer{n}"] for n in range(1, len(asked) + 1)] for one in written}
    if REVIEWING in plan.stages:
        due = list(_reviewing(group, story, asked, answers, plan))
        yield from due
        if not reviews_in(by_stage[REVIEWING], sorted(answers), len(asked)):
            return
        yield from _feedback(group, asked, answers, by_stage[REVIEWING], plan)
    if RATING in plan.stages:
        for writer in answers:
            for number, question in enumerate(asked, 1):
                others = [
                    Answer(name, given[number - 1]) for name, given in answers.items() if name != writer
                ]
                yield _rating(group, story, number, question, others, plan, of=len(asked), among=writer)


def _numbers(own_questions: int) -> range:
    """Return the numbers of composed questions: the first is that for the plot."""
    return range(2, own_questions + 2)


def _secret(plan: Plan) -> dict[str, Any]:
    return {"plan": plan._asdict()}


def _questioning(source: Source, plan: Plan) -> WorkItem:
    fields = tuple(
        Field(f"question{n}", "text", f"Question {n}", {"least_words": 3, "most_words": 60})
        for n in _numbers(plan.own_questions)
    )
    title = f'Ask about the story. Question 1 is always "{PLOT_QUESTION}"'
    form = Form((Panel("story", "The story", source.text),), fields, title)
    key = {"id": f"{source.id}/questions", "story": source.id, "content": content_of(source.text)}
    return WorkItem(form, key, group=source.id, stage=QUESTIONING, wanted=1, secret=_secret(plan))


def _writing(
    group: str, story: str, asked: Sequence[str], plan: Plan, composer: str = ""
) -> Iterator[WorkItem]:
    """Yield the writing of a story; whoever composed the questions is one of those who answer them."""
    least, most = plan.words
    limits = {
        "least_words": least,
        "most_words": most,
        "own_words": {"panel": "story", "longest": plan.longest_copy},
    }
    fields = tuple(Field(f"answer{n}", "text", text, limits) for n, text in enumerate(asked, 1))
    form = Form((Panel("story", "The story", story),), fields, f"Answer in {least} to {most} words.")
    key = {"story": group, "questions": list(asked), "content": content_of(story)}
    common: dict[str, Any] = {"group": group, "stage": WRITING, "secret": _secret(plan)}
    mark = content_of(list(asked))[:8]
    if composer:
        first = {**key, "id": f"{group}/writing/{mark}/{composer}"}
        yield WorkItem(form, first, wanted=1, among=(composer,), **common)
    wanted, authors = (plan.writers - 1, (composer,)) if composer else (plan.writers, ())
    yield WorkItem(form, {**key, "id": f"{group}/writing/{mark}"}, wanted=wanted, authors=authors, **common)


def _shown(id: str, answers: Sequence[Answer], plan: Plan) -> dict[str, Answer]:
    """Return answers under letters that say nothing of whose they are."""
    mixed = sorted(answers)
    random.Random(f"{plan.seed}/{id}").shuffle(mixed)
    return dict(zip(_LETTERS, mixed, strict=False))


def _panels(story: str, question: str, shown: Mapping[str, Answer]) -> tuple[Panel, ...]:
    return (
        Panel("story", "The story", story),
        *(Panel(letter, f"Response {letter.upper()}", one.text) for letter, one in shown.items()),
    )


def _marking(letter: str, labels: Sequence[str]) -> Field:
    words = f"Mark {' and '.join(f'{label}s' for label in labels)} in response {letter.upper()}"
    return Field(f"marks_{letter}", "spans", words, {"panel": letter, "labels": list(labels)}, required=False)


def _reviewing(
    group: str, story: str, asked: Sequence[str], answers: Mapping[str, Sequence[str]], plan: Plan
) -> Iterator[WorkItem]:
    for reviewer in answers:
        for number, question in enumerate(asked, 1):
            others = [Answer(name, given[number - 1]) for name, given in answers.items() if name != reviewer]
            # Of other writers, should one of them be replaced, it is another review.
            id = f"{group}/review/{number}/{reviewer}/{content_of(sorted(others))[:8]}"
            shown = _shown(id, others, plan)
            fields: list[Field] = []
            for letter in shown:
                fields.append(_marking(letter, ("typo", "factual error")))
                label = f"How could response {letter.upper()} be better?"
                fields.append(Field(f"feedback_{letter}", "text", label, help="The writer will read this."))
            entries = [{"id": letter, "text": f"Response {letter.upper()}"} for letter in shown]
            fields.append(Field("rank", "rank", "Rank the responses, the best first", {"entries": entries}))
            key = {
                "id": id,
                "story": group,
                "question": number,
                "of": {letter: one.of for letter, one in shown.items()},
            }
            yield WorkItem(
                Form(_panels(story, question, shown), tuple(fields), question),
                key,
                group=group,
                stage=REVIEWING,
                wanted=1,
                authors=tuple(one.of for one in others),
                among=(reviewer,),
                secret=_secret(plan),
            )


def _rating(
    group: str,
    story: str,
    number: int,
    question: str,
    answers: Sequence[Answer],
    plan: Plan,
    *,
    of: int,
    among: str = "",
) -> WorkItem:
    """Return the rating of answers to a question, one `of` so many of the story."""
    id = f"{group}/rating/{number}" + (f"/{among}/{content_of(sorted(answers))[:8]}" if among else "")
    shown = _shown(id, answers, plan)
    fields: list[Field] = []
    for letter in shown:
        fields.append(_marking(letter, ("factual error",)))
        for name in PROPERTIES:
            label = f"Response {letter.upper()}, {name}: {_ASKED[name]}"
            fields.append(Field(f"{name}_{letter}", "scale", label, {"least": 1, "most": 100, "step": 1}))
    key = {
        "id": id,
        "story": group,
        "question": number,
        "question_count": of,
        "of": {letter: one.of for letter, one in shown.items()},
    }
    return WorkItem(
        Form(_panels(story, question, shown), tuple(fields), question),
        key,
        group=group,
        stage=RATING,
        wanted=1 if among else None,
        authors=tuple(one.of for one in answers) if among else (),
        among=(among,) if among else (),
        secret=_secret(plan),
    )


def _feedback(
    group: str,
    asked: Sequence[str],
    answers: Mapping[str, Sequence[str]],
    reviews: Sequence[Done],
    plan: Plan,
) -> Iterator[WorkItem]:
    """Yield for each writer what the others said of their answers, to be read."""
    for writer, given in answers.items():
        panels = []
        for number, text in enumerate(given, 1):
            own = [
                one for one in reviews if one.key["question"] == number and writer in one.key["of"].values()
            ]
            letters = [next(letter for letter, of in one.key["of"].items() if of == writer) for one in own]
            marks = sorted(
                {
                    (mark["start"], mark["end"])
                    for one, letter in zip(own, letters, strict=True)
                    for mark in one.values.get(f"marks_{letter}") or ()
                }
            )
            panels.append(Panel(f"answer{number}", asked[number - 1], text, marks=tuple(marks)))
            said = [
                f"{one.values[f'feedback_{letter}']} (place {one.values['rank'][letter]} of {len(one.key['of'])})"
                for one, letter in zip(own, letters, strict=True)
            ]
            panels.append(Panel(f"said{number}", "What reviewers say", "\n\n".join(said)))
        field = Field("read", "choice", "Have you read what the reviewers say?", options(("yes", "Yes")))
        id = f"{group}/feedback/{writer}/{content_of([panel.text for panel in panels])[:8]}"
        yield WorkItem(
            Form(tuple(panels), (field,), "What the reviewers say of your answers"),
            {"id": id, "story": group},
            group=group,
            stage=FEEDBACK,
            wanted=1,
            authors=tuple(sorted({one.annotator for one in reviews} - {writer})),
            among=(writer,),
            secret=_secret(plan),
        )


def _rated_from_data(source: Source, systems: str | None, plan: Plan) -> Iterator[WorkItem]:
    """Yield each question with one reference and every system's summary, or without systems with three references."""
    known = systems_summaries(systems) if systems is not None else {}
    for question in source.questions:
        chance = random.Random(f"{plan.seed}/{source.id}/{question.number}")
        written = list(dict.fromkeys(question.references))
        by = {name: texts.get(f"{source.id}/{question.number}") for name, texts in known.items()}
        if missing := [name for name, text in by.items() if text is None]:
            raise EnsueError(f"{systems} has no summary by {missing[0]} of {source.id}/{question.number}.")
        chosen = chance.sample(written, min(len(written), 1 if by else 3))
        answers = [Answer(rounds.human_name(place), text) for place, text in enumerate(chosen)]
        answers += [Answer(name, str(text)) for name, text in by.items()]
        asked = (question.number, question.text)
        yield _rating(source.id, source.text, *asked, answers, plan, of=len(source.questions))


KIND = Squality()
