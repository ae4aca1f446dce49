"""The relations of the RST Discourse Treebank and the 18 classes they form (Carlson and Marcu, 2001)."""

from __future__ import annotations

CLASSES: dict[str, tuple[str, ...]] = {
    "Attribution": ("attribution", "attribution-negative"),
    "Background": ("background", "circumstance"),
    "Cause": ("cause", "result", "cause-result", "consequence"),
    "Comparison": ("comparison", "preference", "analogy", "proportion"),
    "Condition": ("condition", "hypothetical", "contingency", "otherwise"),
    "Contrast": ("contrast", "concession", "antithesis"),
    "Elaboration": (
        "elaboration-additional",
        "elaboration-general-specific",
        "elaboration-object-attribute",
        "elaboration-part-whole",
        "elaboration-process-step",
        "elaboration-set-member",
        "example",
        "definition",
    ),
    "Enablement": ("purpose", "enablement"),
    "Evaluation": ("evaluation", "interpretation", "conclusion", "comment"),
    "Explanation": ("evidence", "explanation-argumentative", "reason"),
    "Joint": ("list", "disjunction"),
    "Manner-Means": ("manner", "means"),
    "Same-unit": ("same-unit",),
    "Summary": ("summary", "restatement"),
    "Temporal": (
        "temporal-before",
        "temporal-after",
        "temporal-same-time",
        "sequence",
        "inverted-sequence",
    ),
    "Textual-organization": ("textualorganization", "textual-organization"),
    "Topic-Change": ("topic-shift", "topic-drift"),
    "Topic-Comment": (
        "problem-solution",
        "question-answer",
        "statement-response",
        "topic-comment",
        "comment-topic",
        "rhetorical-question",
    ),
}
_CLASS_OF = {relation: name for name, relations in CLASSES.items() for relation in relations}
# An embedded unit; and, before that, whether the relation points at the nucleus or at the satellite.
_MARKS = (("-e",), ("-n", "-s"))


def class_of(relation: str) -> str | None:
    """The class of a relation as the treebank's files name it, None where there is no such relation.

    >>> class_of("elaboration-object-attribute-e"), class_of("Consequence-s"), class_of("span")
    ('Elaboration', 'Cause', None)
    """
    name = relation.lower()
    for marks in _MARKS:
        if name in _CLASS_OF:
            break
        for mark in marks:
            name = name.removesuffix(mark)
    return _CLASS_OF.get(name)
