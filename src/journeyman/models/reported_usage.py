"""What servers report about tokens, in the many shapes they have for it, as our Tokens. Servers
count in good faith or not at all, and some count wrongly: a number that cannot be believed is
unknown, and nothing here ever fails.
"""

import math
from collections.abc import Iterable, Mapping

from journeyman.records import Tokens

LARGEST = 10**12
"""More tokens than any request has; a number beyond it is no count."""

# Where the same number stands with different servers, the usual place first.
_Path = tuple[str, ...]
_CACHE_READ: tuple[_Path, ...] = (
    ("prompt_tokens_details", "cached_tokens"),  # OpenAI, vLLM, OpenRouter, llama.cpp
    ("input_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cache_read_input_tokens",),  # Anthropic
    ("cached_tokens",),  # Moonshot
)
_CACHE_WRITE: tuple[_Path, ...] = (
    ("prompt_tokens_details", "cache_write_tokens"),  # OpenRouter
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("cache_creation_input_tokens",),  # Anthropic
)
_REASONING: tuple[_Path, ...] = (
    ("completion_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
    ("reasoning_tokens",),
)


def read_tokens(usage: object, timings: object = None) -> Tokens:
    """The tokens of one request. `usage` is what the server said, `timings` what llama.cpp says
    beside it, in which the cache stands even where its usage leaves it out.
    """
    said = usage if isinstance(usage, Mapping) else {}
    timed = timings if isinstance(timings, Mapping) else {}
    prompt, cached, stored = _prompt(said, timed)
    output = _first(said, (("completion_tokens",), ("output_tokens",)))
    if output is None:
        output = _first(timed, (("predicted_n",),))
    output, reasoning = _with_reasoning(said, output)
    return Tokens(
        input_tokens=prompt,
        output_tokens=output,
        cache_read_tokens=cached,
        cache_write_tokens=stored,
        reasoning_tokens=reasoning,
        cost_usd=_cost(said.get("cost")),
    )


def _prompt(
    said: Mapping[str, object], timed: Mapping[str, object]
) -> tuple[int | None, int | None, int | None]:
    """What of the prompt was neither served nor stored by the cache, what was served, and what was
    stored.
    """
    cached = _first(said, _CACHE_READ)
    if cached is None:
        cached = _first(timed, (("cache_n",),))
    stored = _first(said, _CACHE_WRITE)
    alone = _first(said, (("input_tokens",),))
    if "prompt_tokens" not in said and alone is not None and "input_tokens_details" not in said:
        return alone, cached, stored  # Anthropic counts the cache apart
    whole = _first(said, (("prompt_tokens",), ("input_tokens",)))
    if whole is None:
        return _first(timed, (("prompt_n",),)), cached, stored
    left = whole
    if cached is not None:
        cached = cached if cached <= left else None
        left -= cached or 0
    if stored is not None:
        stored = stored if stored <= left else None
        left -= stored or 0
    return left, cached, stored


def _with_reasoning(
    said: Mapping[str, object], output: int | None
) -> tuple[int | None, int | None]:
    """The output with the reasoning in it, and the reasoning alone. Some servers leave it out of
    the output; the total they report gives them away.
    """
    reasoning = _first(said, _REASONING)
    if output is None or reasoning is None:
        return output, reasoning
    whole = _first(said, (("prompt_tokens",), ("input_tokens",)))
    total = _first(said, (("total_tokens",),))
    if whole is not None and reasoning > 0 and total == whole + output + reasoning:
        return output + reasoning, reasoning
    return output, reasoning if reasoning <= output else None


def _first(said: Mapping[str, object], paths: Iterable[_Path]) -> int | None:
    """The first believable count at one of these places."""
    for path in paths:
        value: object = said
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST:
            return value
    return None


def _cost(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= LARGEST and math.isfinite(value) else None
