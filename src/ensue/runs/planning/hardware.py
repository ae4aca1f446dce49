"""What hardware does in a second: profiles, and the seconds and bytes that counted work takes on one."""

from __future__ import annotations

import math
import tomllib
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError, hint
from ensue.jsonl import read_toml
from ensue.runs.planning.shapes import BYTES, Shape
from ensue.runs.planning.tally import Tally, Work

# Numbers of logits that are made at once, in float32, as scoring/network.py has them.
_LOGITS = {"cuda": 2**28, "cpu": 2**24}
# Activations as wide as the widest layer that a pass has at once, as backends/hf/running.py takes it.
_WIDE = 6
# What a profile says in words, what something is divided by, and what one says that is like another.
_WORDS = ("about", "kind", "source", "like", "date", "command")
_DIVISORS = ("memory", "attention", "loading", "products", "bandwidth")
_LIKE = ("like", "about", "memory", "products", "bandwidth", "source")


@dataclass(frozen=True)
class Hardware:
    """One device: what it does in a second, and where these numbers are from.

    `rates` are operations a second of wide products by dtype; a product of width w runs at w / (w + `narrow`) of
    that. `attention` is the same for attention. The rest are seconds: `elementwise` a token, layer and unit of width,
    `uncompiled` the same on top where nothing is compiled, `vocabulary` a logit, `a_pass` a forward pass, `a_text` a
    text that is scored and `a_sentence` one that is read (the host's part), `written` a token, layer and unit of
    width of a hypothesis, `written_seen` the same for each token it sees, `a_step` a step of a search. `start` is
    what a process takes before it works, `loading` gigabytes of weights a second, `compiling` what compiling takes.
    """

    name: str
    about: str
    kind: str
    memory: float
    source: str
    rates: dict[str, float]
    attention: float
    elementwise: float
    vocabulary: float
    written: float
    written_seen: float
    narrow: float = 0.0
    uncompiled: float = 0.0
    a_pass: float = 0.0
    a_text: float = 0.0
    a_sentence: float = 0.0
    a_step: float = 0.0
    start: float = 5.0
    loading: float = 1.0
    compiling: float = 0.0
    process: float = 0.7
    date: str = ""
    command: str = ""

    @property
    def bytes(self) -> int:
        return int(self.memory * 2**30)

    @property
    def dtype(self) -> str:
        """What a language model is loaded in where nothing else is asked for."""
        return "bfloat16" if self.kind == "cuda" else "float32"

    def seconds(
        self, tally: Tally, shape: Shape, dtype: str, *, encoder: bool = False, compiled: bool = True
    ) -> float:
        """Return how long one device takes for work of a model."""
        wide = shape.layers * shape.width
        rate = self.rates.get(dtype, self.rates["float32"]) * shape.width / (shape.width + self.narrow)
        # Attention is taken as it is run: hidden pairs and padding are computed, too.
        attended = max(tally.attended, tally.seen)
        near = attended * tally.near / tally.seen if tally.seen else 0.0
        half = rate / self.rates.get("bfloat16", rate) if dtype == "float32" and self.kind == "cuda" else 1.0
        return (
            (shape.linear_operations(tally.run) + shape.head_operations(tally.scored)) / rate
            + shape.attention_operations(attended, near) / (self.attention * half)
            + tally.run * wide * (self.elementwise + (0.0 if compiled else self.uncompiled))
            + tally.scored * shape.vocabulary * (self.vocabulary if shape.head else 0.0)
            + tally.passes * self.a_pass
            + tally.texts * (self.a_sentence if encoder else self.a_text)
            + tally.written * wide * self.written
            + tally.written_seen * wide * self.written_seen
            + tally.steps * self.a_step
        )

    def seconds_of(self, work: Work, tally: Tally | None = None) -> float:
        """Return how long one device takes for some work, all of it unless told."""
        found = work.total if tally is None else tally
        encoder = work.what in ("encoded", "answered")
        compiled = work.compiled or work.what != "scored"
        return self.seconds(found, work.shape, work.dtype, encoder=encoder, compiled=compiled)

    def memory_of(self, work: Work, batch: int, times: float) -> dict[str, float]:
        """Return the bytes that so many times a model's work takes on the device, by what they are for."""
        shape, size = work.shape, BYTES[work.dtype]
        logits = min(_LOGITS[self.kind], shape.vocabulary * max(batch, 1)) * 4 if shape.head else 0
        rows = min(batch, max(work.times(times).run, 1.0)) * shape.inner * size * _WIDE
        return {
            "weights": float(shape.weights * size),
            "keys and values": float(work.held * shape.cache_bytes(work.dtype)),
            "rows": float(rows),
            "logits": float(logits),
        }


def find_hardware(name: str) -> Hardware:
    """Return the profile of a name, or of a TOML file with one profile."""
    known = profiles()
    if name in known:
        return known[name]
    path = Path(name).expanduser()
    if path.suffix == ".toml" and path.is_file():
        return _own_profile(path)
    words = hint(name, known, f"there is {', '.join(known)}; or give a .toml file.")
    raise EnsueError(f"There is no hardware {name}; {words}")


def _own_profile(path: Path) -> Hardware:
    """Return the one profile of somebody's own file, or say what is wrong with it."""
    tables = read_toml(path)
    if len(tables) != 1 or not all(isinstance(facts, dict) for facts in tables.values()):
        raise EnsueError(f"{path} must have one table, as [NAME], with the profile of one device.")
    ((name, facts),) = tables.items()
    if said := _wrong_keys(facts) or _wrong_values(facts):
        raise EnsueError(f"{path} holds no profile of a device: {said}.")
    return _scaled(profiles(), name, dict(facts))


def _wrong_keys(facts: dict[str, Any]) -> str:
    """Say which keys are missing or unknown; empty where none is."""
    every = {one.name: one.default is MISSING for one in fields(Hardware) if one.name != "name"}
    needed = {key for key, must in every.items() if must}
    known = {*every}
    if "like" in facts:
        needed, known = {*_LIKE}, {*_LIKE, "date", "command"}
    if missing := sorted(needed - {*facts}):
        return f"it has no {missing[0]}"
    return (
        f"{unknown[0]} is none of {', '.join(sorted(known))}" if (unknown := sorted({*facts} - known)) else ""
    )


def _wrong_values(facts: dict[str, Any]) -> str:
    """Say which value is of the wrong kind or size; empty where none is."""
    for key, value in facts.items():
        if key in _WORDS:
            if not isinstance(value, str):
                return f"{key} is text, not {value!r}"
        elif key == "rates":
            if not isinstance(value, dict) or "float32" not in value or not {*value} <= {*BYTES}:
                return f"rates are a table of {', '.join(BYTES)}, of which float32 must be there"
            if bad := next((dtype for dtype, rate in value.items() if not _is_size(rate) or not rate), None):
                return f"the rate of {bad} is a number above 0, not {value[bad]!r}"
        elif not _is_size(value) or (key in _DIVISORS and not value):
            return f"{key} is a number {'above 0' if key in _DIVISORS else 'from 0'}, not {value!r}"
    if "like" in facts and facts["like"] not in profiles():
        return f"it is like {facts['like']}, which is none of {', '.join(profiles())}"
    if facts.get("kind", "cpu") not in _LOGITS:
        return f"kind is {' or '.join(_LOGITS)}, not {facts['kind']!r}"
    return ""


def _is_size(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


@cache
def profiles() -> dict[str, Hardware]:
    """Return the profiles that come with the package."""
    text = resources.files("ensue.runs.planning").joinpath("hardware.toml").read_text("utf-8")
    found: dict[str, Hardware] = {}
    for name, facts in tomllib.loads(text).items():
        found[name] = _scaled(found, name, dict(facts))
    return found


def _scaled(known: dict[str, Hardware], name: str, facts: dict[str, Any]) -> Hardware:
    """Return a profile; one that is `like` another does products so many times as fast, and has so many times its
    memory's bandwidth."""
    if "like" not in facts:
        return Hardware(name=name, **facts)
    base, dated = known[facts.pop("like")], {"date": "", "command": ""}
    products, bandwidth = facts.pop("products"), facts.pop("bandwidth")
    return replace(
        base,
        name=name,
        rates={dtype: rate * products for dtype, rate in base.rates.items()},
        attention=base.attention * min(products, bandwidth),
        elementwise=base.elementwise / bandwidth,
        vocabulary=base.vocabulary / bandwidth,
        written=base.written / bandwidth,
        written_seen=base.written_seen / bandwidth,
        **(dated | facts),
    )
