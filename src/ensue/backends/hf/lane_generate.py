"""Text generation in lanes: what transformers' own generation writes for each prompt alone, for many at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ensue.backends.hf.beam import BeamRules, NoNumber, TokenPrompt
from ensue.backends.hf.choosing import Stops
from ensue.backends.hf.lane_search import search_lanes
from ensue.scoring.finite import beginning, not_finite
from ensue.scoring.prefixes import common_prefix

# A beginning that prompts share is run once from so many tokens on; fewer are cheaper to run again.
_SHARED = 64
# What a search in lanes has by its rules, and what it must not be asked for.
_RULES = frozenset(
    {"num_beams", "length_penalty", "min_new_tokens", "max_new_tokens", "no_repeat_ngram_size"}
)
_BESIDE = frozenset({"pad_token_id", "stop_strings", "tokenizer"})
_FIXED: Mapping[str, Any] = {"do_sample": False, "early_stopping": False, "repetition_penalty": 1.0}
_TOKEN_RULES = (
    "forced_bos_token_id",
    "forced_eos_token_id",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
)


def is_plain_search(network: Any, settings: Mapping[str, Any]) -> bool:
    """Return whether lanes have the rules of a generation with these settings (in transformers' words)."""
    plain = set(settings) <= _RULES | _BESIDE | set(_FIXED)
    plain &= all(settings.get(name, value) == value for name, value in _FIXED.items())
    return plain and not any(getattr(network.generation_config, name, None) for name in _TOKEN_RULES)


def write_in_lanes(
    executor: Any, prompts: Sequence[Sequence[int]], settings: Mapping[str, Any], tokenizer: Any, model: str
) -> list[list[int]]:
    """Return what is written after each prompt, as tokens, an end token included."""
    network, budget = executor.network, executor.budget
    most, stated = int(settings["max_new_tokens"]), network.model.generation_config.eos_token_id
    listed = stated if isinstance(stated, list) else [stated]
    rules = BeamRules(
        int(settings["num_beams"]),
        frozenset(int(end) for end in listed if end is not None),
        min(int(settings["min_new_tokens"]), most),
        most,
        float(settings["length_penalty"]),
        int(settings["no_repeat_ngram_size"]),
    )
    given = sharing(prompts)
    stops = _stops(tokenizer, settings["stop_strings"]) if settings.get("stop_strings") else None
    out: dict[int, list[int]] = {}
    try:
        for place, hypotheses in search_lanes(
            network,
            given,
            rules,
            room=budget.cache,
            batch=budget.batch,
            apart=True,
            history=True,
            stops=stops,
        ):
            best = hypotheses[0]
            out[place] = [*best.tokens, *([] if best.end is None else [best.end])]
    except NoNumber as error:
        text = str(tokenizer.decode(list(prompts[error.prompt])[:40], skip_special_tokens=True))
        dtype = str(network.dtype).removeprefix("torch.")
        raise not_finite(float("nan"), model=model, dtype=dtype, what=beginning(text)) from None
    return [out[place] for place in range(len(prompts))]


def sharing(prompts: Sequence[Sequence[int]]) -> list[TokenPrompt]:
    """Divide prompts into what several of them begin with and what is their own, a token at least."""
    rows = [np.asarray(prompt) for prompt in prompts]
    groups: list[list[int]] = []
    common = 0
    for place in sorted(range(len(prompts)), key=lambda place: tuple(prompts[place])):
        same = common_prefix(rows[groups[-1][0]][:common], rows[place]) if groups else 0
        # Prompts that share much less than those before them begin a group of their own.
        if same >= max(_SHARED, common / 2):
            groups[-1].append(place)
            common = same
        else:
            groups.append([place])
            common = len(rows[place])
    out = [TokenPrompt((), tuple(prompt)) for prompt in prompts]
    for group in groups:
        first, last = rows[group[0]], rows[group[-1]]
        size = min(common_prefix(first, last), *(len(rows[place]) - 1 for place in group))
        for place in group if len(group) > 1 else ():
            out[place] = TokenPrompt(out[place].own[:size], out[place].own[size:])
    return out


def _stops(tokenizer: Any, strings: Sequence[str]) -> Stops:
    """Return transformers' own test whether tokens end in one of some strings."""
    from transformers import StopStringCriteria

    criteria = StopStringCriteria(tokenizer, list(strings))
    return Stops(int(criteria.maximum_token_len), lambda tail: criteria(tail, None))
