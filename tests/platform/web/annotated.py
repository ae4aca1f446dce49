"""Annotation projects with a form of every type of field, for the tests of their pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ensue.benchmarks.people.form import Field, Form, Panel, options
from ensue.benchmarks.people.kind import WorkItem, kind, settings_of
from ensue.platform.annotation.answering import Answering
from ensue.platform.annotation.building import row_of
from ensue.platform.annotation.projects import Project, Wanted
from ensue.platform.service import Platform

INSTRUCTIONS = "# What to do\n\nRead the text and answer. <script>alert(1)</script> does nothing."
# The lamp is one character to Python and two to JavaScript.
STORY = (
    "The harbour was quiet when Mara came down the steps with the letter in her hand. 🏮 Nobody had lit the"
    " lamps yet; the boats lay close together and knocked against one another as if they talked. She counted"
    " them, as she had done when she was a child, and there was one too few.\n\n"
) * 6
SENTENCES = (
    "The town closes its pool in May.",
    "A new roof would cost two million.",
    "The mayor promised a new pool.",
)
_YES_NO = options((True, "Yes"), (False, "No"))
_ENTRIES = {"entries": [{"id": id, "text": words} for id, words in zip("abc", SENTENCES, strict=True)]}
_ARTICLE = Panel("article", "Article", STORY)
_SUMMARY = Panel("summary", "Summary", sentences=SENTENCES)
_SIDES = (Panel("one", "Text A", STORY[:250]), Panel("two", "Text B", STORY[80:330]))


def _form(type: str, label: str, *panels: Panel, **more: Any) -> Form:
    return Form(panels, (Field("answer", type, label, more),))


FORMS = {
    "choice": _form(
        "choice", "Does it follow?", _ARTICLE, **options(("y", "Yes"), ("n", "No"), ("?", "Perhaps"))
    ),
    "choices": _form(
        "choices", "What is it about?", _ARTICLE, **options(("a", "Boats"), ("b", "Lamps"), ("c", "Tax"))
    ),
    "scale": Form(
        (_ARTICLE,),
        (
            Field(
                "five", "scale", "How fluent is it?", {"least": 1, "most": 5, "labels": {"1": "not at all"}}
            ),
            Field("hundred", "scale", "How correct is it?", {"least": 1, "most": 100}),
        ),
    ),
    "text": _form("text", "What happens?", _ARTICLE, least_words=3, most_words=12),
    "spans": _form("spans", "Mark what is wrong", _ARTICLE, panel="article", labels=["Typo", "Error"]),
    "order": _form("order", "Put these sentences in order", **_ENTRIES),
    "place": _form("place", "Where does it belong?", _SUMMARY, panel="summary", sentence="It is from 1968."),
    "rank": _form("rank", "Which is best?", _ARTICLE, **_ENTRIES),
    "preference": _form("preference", "Which is the original?", *_SIDES, left="one", right="two", tie=True),
    "sentences": _form(
        "sentences", "Does the article say so?", _ARTICLE, _SUMMARY, panel="summary", reason=True, **_YES_NO
    ),
}
HEBREW = Form(
    (Panel("text", "מאמר", "זהו טקסט בעברית. הוא נקרא מימין לשמאל."),),
    (
        Field("marks", "spans", "סמנו טעויות", {"panel": "text", "labels": ["טעות"]}, required=False),
        Field("right", "choice", "האם זה נכון?", options(("y", "כן"), ("n", "לא"))),
        Field("clear", "scale", "עד כמה זה ברור?", {"least": 1, "most": 5}, required=False),
    ),
)
WHEN = Form(
    (Panel("pair", "Text", "A man plays.\nA man sleeps.", marks=((2, 5),)),),
    (
        Field(
            "label",
            "choice",
            "Does it follow?",
            options(("y", "Yes"), ("n", "No")),
            help="<img src=x onerror=alert(1)> is text.",
        ),
        Field("why", "text", "Why not?", {"least_words": 2}, when={"field": "label", "equals": "n"}),
        Field("sure", "text", "Are you sure?", when={"field": "why", "equals": "Nobody plays asleep"}),
    ),
)


def make(
    platform: Platform, name: str, items: Sequence[WorkItem], *, by: str | None = None, **settings: Any
) -> Project:
    """Make a project of items and open it."""
    part = Answering(platform)
    known = settings_of(kind("custom"))
    values = {key: one.default for key, one in known.items()} | {"completion_code": f"DONE-{name}"} | settings
    rows = [row_of(one, values["labels"]) for one in items]
    built = {
        "title": f"Project {name}",
        "instructions": INSTRUCTIONS,
        "settings": values,
        "items": rows,
        "source": "",
    }
    part.projects.insert(Wanted(name, "custom"), built, by=by)
    return part.projects.set_state(name, "open")


def items(form: Form, count: int, **facts: Any) -> list[WorkItem]:
    """Return as many items of one form."""
    return [
        WorkItem(form, {"id": f"{facts.get('phase', 'work')}-{number}"}, **facts) for number in range(count)
    ]
