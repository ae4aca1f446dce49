"""Forms and answers: what is taken, what is refused, and that nothing a browser may send breaks the check."""

from __future__ import annotations

import math
import sys
import unicodedata
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.people.checking import check_answer, settled, unwanted
from ensue.benchmarks.people.form import Field, Form, Panel, form_problems, options
from ensue.errors import EnsueError

ENTRIES = {"entries": [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}, {"id": "c", "text": "C"}]}
YES_NO = options(("yes", "Yes"), ("no", "No"))
FORM = Form(
    (Panel("text", text="One two three"), Panel("list", sentences=("A.", "B."))),
    (
        Field("choice", "choice", "Which?", YES_NO),
        Field("choices", "choices", "Which ones?", YES_NO),
        Field("scale", "scale", "How much?", {"least": 1, "most": 5, "step": 0.5}),
        Field("text", "text", "Why?", {"least_words": 2, "most_words": 4}),
        Field("spans", "spans", "Where?", {"panel": "text", "labels": ["typo"]}),
        Field("order", "order", "Order", ENTRIES),
        Field("place", "place", "Place", {"panel": "list", "sentence": "C."}),
        Field("rank", "rank", "Rank", ENTRIES),
        Field("preference", "preference", "Better", {"left": "text", "right": "list", "tie": True}),
        Field("sentences", "sentences", "Each", {"panel": "list", **YES_NO, "reason": True}),
    ),
)
RIGHT: dict[str, Any] = {
    "choice": "yes",
    "choices": ["no", "yes"],
    "scale": 2.5,
    "text": "two words",
    "spans": [{"start": 0, "end": 13, "label": "typo", "note": "all of it"}],
    "order": ["c", "a", "b"],
    "place": 2,
    "rank": {"a": 1, "b": 1, "c": 3},
    "preference": "tie",
    "sentences": [{"value": "yes", "reason": ""}, {"value": "no", "reason": "why"}],
}
WRONG: list[tuple[str, Any]] = [
    ("choice", "maybe"),
    ("choice", True),
    ("choice", ["yes"]),
    ("choices", ["yes", "yes"]),
    ("choices", "yes"),
    ("choices", []),
    ("scale", 6),
    ("scale", 1.25),
    ("scale", True),
    ("scale", "3"),
    ("text", "one"),
    ("text", "one two three four five"),
    ("text", "a nul \x00 here"),
    ("text", "half a pair \ud800 here"),
    ("text", {"a": 1}),
    ("spans", [{"start": 5, "end": 5, "label": "typo"}]),
    ("spans", [{"start": 0, "end": 14, "label": "typo"}]),
    ("spans", [{"start": 0, "end": 3, "label": "other"}]),
    ("spans", [{"start": 0, "end": 3, "label": "typo", "more": 1}]),
    ("spans", [{"start": 0, "end": 3, "label": "typo", "note": 7}]),
    ("spans", [{"start": 0, "end": 3, "label": "typo", "note": []}]),
    ("spans", ["typo"]),
    ("order", ["a", "b"]),
    ("order", ["a", "b", "b"]),
    ("place", 3),
    ("place", -1),
    ("place", 1.0),
    ("rank", {"a": 1, "b": 2}),
    ("rank", {"a": 0, "b": 2, "c": 3}),
    ("rank", {"a": 1, "b": 2, "c": 4}),
    ("rank", {"a": 1, "b": 2, "d": 3}),
    ("preference", "both"),
    ("sentences", [{"value": "yes"}]),
    ("sentences", [{"value": "yes"}, {"value": "maybe"}]),
    ("sentences", [{"value": "yes"}, {"value": "no", "other": 1}]),
    ("sentences", [{"value": "yes"}] * 3),
    ("sentences", [{"value": "yes"}, {"value": "no", "reason": 0}]),
]


def test_a_right_answer_has_no_problem() -> None:
    assert check_answer(FORM, RIGHT) == []


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_value_is_one_problem_that_names_its_field(number: int) -> None:
    name, value = WRONG[number]
    (problem,) = check_answer(FORM, {**RIGHT, name: value})
    label = next(field.label for field in FORM.fields if field.id == name)
    assert problem.startswith(label.rstrip("?"))


@pytest.mark.parametrize("field", sorted(RIGHT))
def test_what_is_missing_is_a_problem_of_a_final_answer_alone(field: str) -> None:
    values = {key: value for key, value in RIGHT.items() if key != field}
    assert len(check_answer(FORM, values)) == 1
    assert check_answer(FORM, values, final=False) == []


def test_a_draft_may_be_incomplete_but_not_of_another_form() -> None:
    draft = {"text": "one", "order": ["b"], "rank": {"a": 2}, "sentences": [None], "choices": []}
    assert check_answer(FORM, draft, final=False) == []
    assert len(check_answer(FORM, {"choice": "maybe"}, final=False)) == 1
    assert check_answer(FORM, {"strange": 1}, final=False) == ['There is no field "strange".']
    assert check_answer(FORM, [1], final=False) == ["The values are no object."]


def test_a_field_that_another_hides_is_neither_asked_nor_kept() -> None:
    form = Form(
        (),
        (
            Field("bad", "choice", "Is it bad?", YES_NO),
            Field("why", "text", "Why?", when={"field": "bad", "equals": "yes"}),
        ),
    )
    assert check_answer(form, {"bad": "no"}) == []
    assert check_answer(form, {"bad": "yes"}) == ["Why is not answered."]
    assert settled(form, {"bad": "no", "why": "left from before"}) == {"bad": "no"}
    # What is left there is kept in the history, and must be what a draft may be.
    assert check_answer(form, {"bad": "no", "why": "\ud800"}) == [
        "Why: there is a control character in it; leave it out."
    ]
    assert check_answer(form, {"bad": "no", "why": math.nan}) == ["Why: the value is no text."]


def test_a_field_that_depends_on_a_hidden_one_is_hidden_too() -> None:
    form = Form(
        (),
        (
            Field("bad", "choice", "Is it bad?", YES_NO),
            Field("worse", "choice", "Is it worse?", YES_NO, when={"field": "bad", "equals": "yes"}),
            Field("why", "text", "Why?", when={"field": "worse", "equals": "yes"}),
        ),
    )
    left = {"bad": "no", "worse": "yes"}
    assert check_answer(form, left) == []
    assert settled(form, left) == {"bad": "no"}
    assert check_answer(form, {**left, "bad": "yes"}) == ["Why is not answered."]


def test_numbers_are_the_same_however_json_writes_them() -> None:
    """A browser sends 1 for 1.0."""
    ways = options((1.0, "One"), (2.5, "Two and a half"), (True, "Yes"))
    form = Form((), (Field("one", "choice", "Which?", ways), Field("all", "choices", "Which?", ways)))
    assert check_answer(form, {"one": 1, "all": [2.5, 1, True]}) == []
    assert settled(form, {"one": 1, "all": [True, 1]}) == {"one": 1.0, "all": [1.0, True]}
    assert check_answer(form, {"one": False, "all": [True]}) == ["Which: false is none of the options."]


def test_as_many_passages_are_marked_as_are_asked_for() -> None:
    field = Field("f", "spans", "Where?", {"panel": "p", "labels": ["typo"], "least": 2})
    form = Form((Panel("p", text="Some words."),), (field,))
    spans = [{"start": place, "end": place + 1, "label": "typo"} for place in range(3)]
    assert check_answer(form, {"f": spans[:2]}) == []
    for few in ([], spans[:1]):
        assert check_answer(form, {"f": few}) == ["Where: mark at least 2."]
        assert check_answer(form, {"f": few}, final=False) == []


@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["above", "below"])
def test_a_number_beyond_all_floats_is_refused(value: int) -> None:
    for final in (True, False):
        (problem,) = check_answer(FORM, {**RIGHT, "scale": value}, final=final)
        assert problem.endswith("is not from 1 to 5.")


def test_a_form_survives_json_and_a_broken_one_is_refused() -> None:
    assert Form.of(FORM.as_dict()) == FORM
    assert list(form_problems(FORM)) == []
    broken = FORM.as_dict()
    broken["fields"][0]["type"] = "slider"
    with pytest.raises(EnsueError, match="of type 'slider'"):
        Form.of(broken)
    for change in ({"panels": 3}, {"fields": []}, {"fields": [{"id": "a"}]}, {"panels": [{"id": "p"}]}):
        with pytest.raises(EnsueError, match="This is no form"):
            Form.of({**FORM.as_dict(), **change})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["a", "b", "start", "end", "value", "label"]) | st.text(max_size=4), inner
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(sorted(RIGHT)), JSON), st.booleans())
def test_whatever_is_sent_is_checked_without_an_error(values: dict[str, Any], final: bool) -> None:
    assert all(isinstance(problem, str) for problem in check_answer(FORM, values, final=final))


def test_a_text_must_be_in_ones_own_words_and_a_judgment_have_its_reason_where_a_form_says_so() -> None:
    story = Panel("story", "The story", "One two three four five six.")
    own = {"own_words": {"panel": "story", "longest": 3}}
    each = {"panel": "list", **YES_NO, "reason": "required"}
    form = Form(
        (story, Panel("list", sentences=("A.", "B."))),
        (Field("text", "text", "Answer", own), Field("each", "sentences", "Each", each)),
    )
    judged = [{"value": "yes", "reason": "It says so."}, {"value": "no", "reason": "It does not."}]
    assert check_answer(form, {"text": "Two three four, she said.", "each": judged}) == []
    copied, unsaid = check_answer(
        form, {"text": "So TWO three four five!", "each": [judged[0], {"value": "no", "reason": " "}]}
    )
    assert "4 words in a row are those of “The story” ('two three four five')" in copied
    assert unsaid == "Each: sentence 2 has no reason."
    assert check_answer(form, {"text": "Two three four five", "each": [{"value": "no"}]}, final=False) == []
    told = Field("text", "text", "Answer", {"own_words": {"panel": "story", "longest": 3}})
    listed = Form((Panel("story", sentences=("One two three.", "Four five six.")),), (told,))
    assert "4 words in a row" in check_answer(listed, {"text": "So two three four five!"})[0]
    broken = {
        **form.as_dict(),
        "fields": [{"id": "t", "type": "text", "label": "T", "own_words": {"panel": "x"}}],
    }
    with pytest.raises(EnsueError, match="own_words that name no panel"):
        Form.of(broken)


@pytest.mark.parametrize(
    ("type", "more", "words"),
    [
        ("choice", {"options": ["y", "n"]}, "no list of tables, each with its 'value'"),
        ("choice", {"options": 4}, "no list of tables, each with its 'value'"),
        ("choice", {"options": [{"label": "Yes"}]}, "no list of tables, each with its 'value'"),
        ("choice", {"options": []}, "has no options"),
        ("choice", options(("y", "Y"), ("y", "Yes")), "two have the same 'value'"),
        ("choice", options((1, "Y"), (1.0, "Yes")), "two have the same 'value'"),
        ("choice", options((2**53 + 1, "Y"), (2, "Yes")), "9007199254740993, which no browser counts to"),
        ("order", {"entries": [{"id": 1.5, "text": "A"}]}, "id = 1.5, which is no text or whole number"),
        ("rank", {"entries": [{"id": True, "text": "A"}]}, "id = true, which is no text or whole number"),
        ("rank", {"entries": [{"id": 1, "text": "A"}, {"id": "1", "text": "B"}]}, "two have the same 'id'"),
        ("choices", {**options(("y", "Y")), "least": 2}, "can never be answered"),
        ("order", {"entries": ["a", "b"]}, "no list of tables, each with its 'id'"),
        ("rank", {"entries": [{"id": "a", "text": "A"}, {"id": "a", "text": "B"}]}, "two have the same 'id'"),
        ("spans", {"panel": "p", "labels": 3}, "labels that are no list of words"),
        ("spans", {"panel": "p", "labels": "abc"}, "labels that are no list of words"),
        ("scale", {"least": 1, "most": 5, "step": "q"}, "step = 'q', which is no number"),
        ("text", {"own_words": {"panel": "p", "longest": -3}}, "own_words that name no panel"),
        ("scale", {"least": 1, "most": math.inf}, "has most = inf, which is no number"),
        ("scale", {"least": math.nan, "most": 5}, "has least = nan, which is no number"),
        ("scale", {"least": 1, "most": 10**400}, "which is no number"),
        ("scale", {"least": 1, "most": 5, "step": math.inf}, "has step = inf, which is no number"),
        ("scale", {"least": 1, "most": 5, "labels": "good"}, "labels that are no table of words by number"),
        ("scale", {"least": 1, "most": 5, "labels": {"good": "5"}}, "no table of words by number"),
        ("scale", {"least": 1, "most": 5, "labels": {"5": date(2026, 1, 1)}}, "no table of words by number"),
        ("text", {"most_words": math.inf}, "has most_words = inf, which is no number"),
        ("choices", {**YES_NO, "least": math.nan}, "has least = nan, which is no number"),
        ("choice", options((math.inf, "Most")), "has options that are no list"),
        ("choice", {"options": [{"value": "a"}]}, "each with its 'value' and 'label'"),
        ("order", {"entries": [{"id": "a"}]}, "each with its 'id' and 'text'"),
        ("choice", {**YES_NO, "more": [date(2026, 1, 1)]}, "holds what JSON does not have"),
        ("spans", {"panel": "p", "labels": []}, "has no labels"),
        ("scale", {"least": 1, "most": True}, "has most = true, which is no number"),
        ("place", {"panel": "p", "sentence": "It."}, "is about sentences, and the panel 'p' has none"),
        ("sentences", {"panel": "p", **YES_NO}, "is about sentences, and the panel 'p' has none"),
        ("preference", {"left": "p", "right": "p"}, "compares the panel 'p' with itself"),
    ],
)
def test_lists_that_nobody_could_answer_are_one_problem(type: str, more: dict[str, Any], words: str) -> None:
    form = Form((Panel("p", text="Some words."),), (Field("f", type, "Which?", more),))
    (problem,) = form_problems(form)
    assert "the field 'f'" in problem
    assert words in problem


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ({"field": "first", "equals": "maybe"}, "is never asked: 'maybe' is no answer to 'first'"),
        ({"field": "first"}, "has when without 'equals'"),
        ({"equals": "yes"}, "has when without 'field'"),
        ({"field": "f", "equals": "yes"}, "depends on 'f', which is no field before it"),
        ({"field": ["first"], "equals": "yes"}, r"depends on ['first'], which is no field before it"),
        ({"field": "all", "equals": "yes"}, "is never asked: 'yes' is no answer to 'all'"),
        (
            {"field": "all", "equals": ["yes", "maybe"]},
            "is never asked: ['yes', 'maybe'] is no answer to 'all'",
        ),
        ({"field": "all", "equals": ["no", "yes"]}, "is never asked: ['no', 'yes'] is no answer to 'all'"),
        ({"field": "better", "equals": "one"}, "is never asked: 'one' is no answer to 'better'"),
        ({"field": "better", "equals": "tie"}, "is never asked: 'tie' is no answer to 'better'"),
        ({"field": "much", "equals": "3"}, "is never asked: '3' is no answer to 'much'"),
        ({"field": "much", "equals": 6}, "is never asked: 6 is no answer to 'much'"),
    ],
)
def test_a_field_that_is_never_asked_is_one_problem(when: dict[str, Any], words: str) -> None:
    before = (
        Field("first", "choice", "Which?", YES_NO),
        Field("all", "choices", "Which?", YES_NO),
        Field("better", "preference", "Which?", {"left": "one", "right": "two"}),
        Field("much", "scale", "How much?", {"least": 1, "most": 5}),
    )
    panels = (Panel("one", text="One."), Panel("two", text="Two."))
    (problem,) = form_problems(Form(panels, (*before, Field("f", "text", "Why?", when=when))))
    assert words in problem


def test_the_points_of_a_scale_may_have_labels() -> None:
    more = {"least": 1, "most": 5, "labels": {"1": "bad", "5": "good"}}
    assert not list(form_problems(Form((), (Field("f", "scale", "How good?", more),))))


def test_control_characters_and_half_pairs_are_unwanted_and_nothing_else() -> None:
    for point in range(sys.maxunicode + 1):
        character = chr(point)
        expected = unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t\r"
        assert unwanted(character) is expected, hex(point)
    assert unwanted("a long text with one \x00 in it")
