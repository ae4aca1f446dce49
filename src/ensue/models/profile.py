"""The profile of a text: how well each of its sentences follows, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

# What a row holds of every sentence.
COLUMNS = (
    "surprisal",
    "tokens",
    "gain",
    "received",
    "given",
    "likeness",
    "belonging",
    "standing",
    "share_below",
)


class ProfiledSentence(NamedTuple):
    """A sentence, or a line of what is set in lines, and how well it follows.

    `start` and `end` are its place in the text. `surprisal` is in nats a token of the text read through, `gain` what
    the text before saves of it; `received`, `given`, `likeness` and `belonging` are those of
    `scoring.following.Following`. `standing` says how firmly it stands, in nats, and `share_below` what share of the
    sentences of sound texts stand less firmly, once the text's own looseness is made good; both are None for the
    first sentence and where there is no calibration.
    """

    text: str
    start: int
    end: int
    tokens: int
    surprisal: float | None
    gain: float | None
    received: float | None
    given: float | None
    likeness: float | None
    standing: float | None
    share_below: float | None
    belonging: float | None = None


@dataclass(frozen=True)
class Profile:
    """A text, how well each of its sentences follows, and the verdict: `stands_out` is a sentence's place or None.

    `least` is the place of the sentence that follows least, `false_alarm` the share of sound texts of this length
    with one that follows as little. `verdict` says it in a sentence and `why` gives the reason.
    """

    id: str
    text: str
    tokens: int
    logprob: float
    logprob_per_token: float
    sentences: tuple[ProfiledSentence, ...]
    stands_out: int | None
    least: int | None
    false_alarm: float | None
    verdict: str
    why: str

    def row(self) -> dict[str, Any]:
        """Return the profile as `ensue score --profile --json` prints it."""
        columns = {name: [getattr(one, name) for one in self.sentences] for name in COLUMNS}
        return {
            "id": self.id,
            "tokens": self.tokens,
            "logprob": self.logprob,
            "logprob_per_token": self.logprob_per_token,
            "profile": [
                {
                    "name": "text",
                    "order": list(range(len(self.sentences))),
                    "sentences": [one.text for one in self.sentences],
                    **columns,
                    "stands_out": self.stands_out,
                    "least": self.least,
                    "false_alarm": self.false_alarm,
                    "verdict": self.verdict,
                    "why": self.why,
                }
            ],
        }
