"""What went wrong with a request to a remote model, and whether and when to try again."""

import email.utils
import json
import math
import re
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

import httpx2
import openai
from msgspec import Struct

from journeyman.models.model import Cancelled
from journeyman.models.reply_reader import NotAReply
from journeyman.text.invisible import UNSEEN

EXCERPT_LIMIT = 300
_SCANNED = 20_000
"""How much of a body is looked at; what a refusal says stands at its beginning."""

_UNSHOWN = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{UNSEEN}]+")


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


class Failure(Struct, frozen=True, kw_only=True):
    """A request without a reply. `body` is what the server sent, as it came: it is shown only by
    `excerpt`. `next_step` is what a person should do, with places for the model and its address.
    """

    told: str
    next_step: str
    status: int | None = None
    body: str = ""
    passes: bool = True
    asked_delay_s: float | None = None

    @property
    def is_context_full(self) -> bool:
        if self.status in (401, 403, 404, 429):
            return False
        return self.status == 413 or bool(CONTEXT_FULL.search(self.body))


_ADVICE = {
    401: "Check model.api_key.",
    402: "The account has no credit left: top it up, or choose another model.",
    403: "Check model.api_key.",
    404: "Check model.name ({name}) and model.base_url ({url}).",
    429: "The limit of the account is reached: wait a while, or raise it.",
}
"""What to do about a status."""

_LATER = "Try again later."
_REFUSED = "The server does not take this request: check that {name} can chat and use tools."
_BROKEN = "The server has a problem of its own: try again later, or choose another model."
_UNREACHED = "Check that the server runs and that model.base_url ({url}) is right."
_NO_API = "Check that model.base_url ({url}) is the address of its API, which often ends in /v1."


def excerpt(text: str, secret: str) -> str:
    """The beginning of what a server sent, on one line, without the secret."""
    if secret:
        text = text.replace(secret, "[api key]")
    line = " ".join(_UNSHOWN.sub(" ", text[: 4 * EXCERPT_LIMIT]).split())
    return line if len(line) <= EXCERPT_LIMIT else line[: EXCERPT_LIMIT - 1] + "…"


def failure_of(error: Exception, timeout_s: float) -> Failure:
    """What an error of a request means."""
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return too_quiet(timeout_s)
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | OSError):
        cause = str(error.__cause__ or error)
        return Failure(told="the connection failed", body=cause, next_step=_UNREACHED)
    if isinstance(error, openai.APIError):
        return _refusal(error)
    if isinstance(error, NotAReply):
        return Failure(told=str(error), next_step=_BROKEN)
    sent = error.doc if isinstance(error, json.JSONDecodeError) else ""
    return Failure(told="what came is not JSON", body=sent[:_SCANNED], next_step=_NO_API)


def too_quiet(timeout_s: float) -> Failure:
    """The failure of a request to which nothing was said."""
    return Failure(told=f"nothing came for {timeout_s:g} seconds", next_step=_UNREACHED)


def _refusal(error: openai.APIError) -> Failure:
    """A status that refuses, or an error with a status of success; some name the one they mean."""
    told, delay = "it answered with an error", None
    if isinstance(error, openai.APIStatusError):
        status, body = error.status_code, error.response.text
        told = f"it answered {status}"
        delay = find_asked_delay(error.response.headers, time.time())
    else:
        body = error.body if isinstance(error.body, str) else json.dumps(error.body)
        code = error.body.get("code") if isinstance(error.body, Mapping) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
    broke = NO_CREDIT.search(body[:_SCANNED])
    usual = _BROKEN if status >= 500 else _LATER if passes(status) else _REFUSED
    return Failure(
        told=told,
        next_step=_ADVICE.get(402 if broke else status, usual),
        status=status,
        body=body[:_SCANNED],
        passes=passes(status) and not broke,
        asked_delay_s=delay,
    )


# The words of a refusal that mean that the conversation is too long.
CONTEXT_FULL = _any(
    # The code that OpenAI, Azure and llama.cpp give beside the sentence.
    r"context_length_exceeded|exceed_context_size|context_window_exceeded",
    # OpenAI, vLLM, DeepSeek, xAI, SGLang, OpenRouter.
    r"maximum (?:allowed )?(?:context|prompt|input|sequence)[ _](?:length|size|window|tokens)",
    # llama.cpp, LM Studio, Bedrock.
    r"exceed(?:s|ed|ing)? (?:\w+ ){0,3}(?:context|token|input|prompt)\w*"
    r"[ _](?:size|length|window|limit|count|tokens)",
    # Anthropic, Bedrock, Mistral, Ollama.
    r"(?:prompt|input|request|messages?|conversation|context)(?: \w+){0,2}"
    r" (?:is|are|was|were) too (?:long|large)\b",
    # Cohere, Mistral and small servers.
    r"too many (?:input |prompt )?tokens\b(?! per)",
    # Gemini, watsonx.
    r"(?:token count|number of (?:input )?tokens)[^.]{0,60} (?:exceeds|is greater than)",
    # Text Generation Inference, Groq, TabbyAPI.
    r"inputs` tokens \+ `max_new_tokens` must be|reduce the length of the (?:messages|prompt"
    r"|input)|longer than the (?:model's )?context",
)

# OpenAI answers 429, but no waiting helps; "exceeded your quota" alone can mean a busy minute.
NO_CREDIT = _any(
    r"insufficient_quota|insufficient (?:balance|credits|funds)|credit balance is too low"
)


class Adjustment(NamedTuple):
    """A parameter that some servers refuse by name: it is left out, or sent under a new name."""

    pattern: str
    parameter: str
    instead: str = ""


ADJUSTMENTS: tuple[Adjustment, ...] = (
    # Older servers stream but do not count while they do.
    Adjustment(r"stream_options|include_usage", "stream_options"),
    # Some models answer only as a whole.
    Adjustment(r"\bstream(?:ing)?\b", "stream"),
    # Reasoning models of OpenAI know the limit by its newer name, and choose for themselves.
    Adjustment(r"max_completion_tokens", "max_tokens", instead="max_completion_tokens"),
    Adjustment(r"\btemperature\b", "temperature"),
)


def find_adjustment(text: str, sent: Collection[str]) -> Adjustment | None:
    """The first parameter that was sent and that a refusal names."""
    rows = (row for row in ADJUSTMENTS if row.parameter in sent)
    return next((row for row in rows if re.search(row.pattern, text, re.IGNORECASE)), None)


PASSING_STATUSES = frozenset({408, 409, 425, 429})
"""Refusals that pass by themselves, beside all of the server's own errors."""

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
LONGEST_ASKED_S = 120.0
"""How long a server can make us wait; it may ask for hours."""

SLICE_S = 0.2
"""How long a pause goes on before it is asked again whether anyone still waits."""


def passes(status: int) -> bool:
    """Whether a request that got this status may get another the next time."""
    return status in PASSING_STATUSES or status >= 500


def delay_s(failures: int, asked_s: float | None, chance: Callable[[], float]) -> float:
    """How long to wait after so many failures: as the server asks, else twice as long each time."""
    if asked_s is not None:
        return min(asked_s, LONGEST_ASKED_S)
    longest = min(FIRST_DELAY_S * 2.0 ** min(failures - 1, 16), LONGEST_DELAY_S)
    return longest * (1 - chance() / 2)


def find_asked_delay(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that `retry-after-ms` or `Retry-After`, also as a date, asks for, if any."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1)):
        with suppress(ValueError):
            number = float(headers.get(name, ""))
            if math.isfinite(number) and number >= 0:
                return number * unit_s
    with suppress(ValueError, OverflowError, OSError):
        until = email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
        return max(0.0, until - now)
    return None


def pause(seconds: float, sleep: Callable[[float], None], cancelled: Callable[[], bool]) -> None:
    """Wait, in slices, and give up with Cancelled as soon as nobody waits for the end of it."""
    while not cancelled():
        if seconds <= 0:
            return
        sleep(min(seconds, SLICE_S))
        seconds -= SLICE_S
    raise Cancelled("the request was given up between two tries")
