"""Classifies failed requests to a remote model, and decides whether, when and how to retry."""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import openai
from msgspec import Struct

from journeyman.models.model import Cancelled, JsonObject
from journeyman.models.reply_parser import NotAReply
from journeyman.models.streaming_request import http
from journeyman.text.invisible import INVISIBLE_CHARACTERS
from journeyman.text.truncation import one_line

EXCERPT_LIMIT = 300
_SCANNED = 20_000
"""How much of a response body is searched; error messages are at its beginning."""

_UNSHOWN = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{INVISIBLE_CHARACTERS}]+")


class Failure(Struct, frozen=True, kw_only=True):
    """A request without a reply. `body` is what the server sent, unchanged; show it only through
    `excerpt`. `next_step` tells the user what to do, with fields for the model and its address.
    """

    reason: str
    next_step: str
    status: int | None = None
    body: str = ""
    is_transient: bool = True
    retry_after_s: float | None = None

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
    429: "The account's rate limit is reached: wait a while, or raise it.",
}
"""What the user should do about a status."""

_LATER = "Try again later."
_REJECTED = "The server rejects this request: check that {name} supports chat and tools."
_SERVER_ERROR = "The server has a problem: try again later, or choose another model."
_UNREACHABLE = "Check that the server is running and that model.base_url ({url}) is correct."
_NOT_AN_API = "Check that model.base_url ({url}) is the address of an API; it often ends in /v1."


def excerpt(text: str, secret: str) -> str:
    """Return the beginning of a response on one line, without the secret."""
    if secret:
        text = text.replace(secret, "[api key]")
    return one_line(_UNSHOWN.sub(" ", text[: 4 * EXCERPT_LIMIT]), EXCERPT_LIMIT)


def failure_of(error: Exception, timeout_s: float) -> Failure:
    """Return the failure that an exception of a request means."""
    if isinstance(error, openai.APITimeoutError | http.TimeoutException):
        return timeout_failure(timeout_s)
    if isinstance(error, openai.APIConnectionError | http.HTTPError | OSError):
        cause = str(error.__cause__ or error)
        return Failure(reason="the connection failed", body=cause, next_step=_UNREACHABLE)
    if isinstance(error, openai.APIError):
        return _api_failure(error)
    if isinstance(error, NotAReply):
        return Failure(reason=str(error), next_step=_SERVER_ERROR)
    body = error.doc if isinstance(error, json.JSONDecodeError) else ""
    return Failure(reason="the response is not JSON", body=body[:_SCANNED], next_step=_NOT_AN_API)


def timeout_failure(timeout_s: float) -> Failure:
    """Return the failure of a request without a response in time."""
    return Failure(reason=f"no data for {timeout_s:g} seconds", next_step=_UNREACHABLE)


def _api_failure(error: openai.APIError) -> Failure:
    """Return the failure for an error status, or for an error sent with status 200, which may
    contain the status that is meant.
    """
    reason, delay = "the server returned an error", None
    if isinstance(error, openai.APIStatusError):
        status, body = error.status_code, error.response.text
        reason = f"the server returned status {status}"
        delay = find_retry_after(error.response.headers)
    else:
        body = error.body if isinstance(error.body, str) else json.dumps(error.body)
        code = error.body.get("code") if isinstance(error.body, Mapping) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
    no_credit = NO_CREDIT.search(body[:_SCANNED])
    is_transient = status in TRANSIENT_STATUSES or status >= 500
    default = _SERVER_ERROR if status >= 500 else _LATER if is_transient else _REJECTED
    return Failure(
        reason=reason,
        next_step=_ADVICE.get(402 if no_credit else status, default),
        status=status,
        body=body[:_SCANNED],
        is_transient=is_transient and not no_credit,
        retry_after_s=delay,
    )


# Phrases in error messages that mean that the conversation is too long.
CONTEXT_FULL = re.compile(
    # The error code of OpenAI, Azure and llama.cpp.
    r"context_length_exceeded|exceed_context_size|context_window_exceeded"
    # OpenAI, vLLM, DeepSeek, xAI, SGLang, OpenRouter.
    r"|maximum (?:allowed )?(?:context|prompt|input|sequence)[ _](?:length|size|window|tokens)"
    # llama.cpp, LM Studio, Bedrock.
    r"|exceed(?:s|ed|ing)? (?:\w+ ){0,3}(?:context|token|input|prompt)\w*"
    r"[ _](?:size|length|window|limit|count|tokens)"
    # Anthropic, Bedrock, Mistral, Ollama.
    r"|(?:prompt|input|request|messages?|conversation|context)(?: \w+){0,2}"
    r" (?:is|are|was|were) too (?:long|large)\b"
    # Cohere, Mistral and small servers.
    r"|too many (?:input |prompt )?tokens\b(?! per)"
    # Gemini, watsonx.
    r"|(?:token count|number of (?:input )?tokens)[^.]{0,60} (?:exceeds|is greater than)"
    # Text Generation Inference, Groq, TabbyAPI.
    r"|inputs` tokens \+ `max_new_tokens` must be|reduce the length of the (?:messages|prompt"
    r"|input)|longer than the (?:model's )?context",
    re.IGNORECASE,
)

# OpenAI returns 429, but waiting does not help; "exceeded your quota" alone can mean a busy minute.
NO_CREDIT = re.compile(
    r"insufficient_quota|insufficient (?:balance|credits|funds)|credit balance is too low",
    re.IGNORECASE,
)


class Adjustment(NamedTuple):
    """A parameter that some servers reject by name: it is left out, or sent under another name."""

    pattern: str
    parameter: str
    replacement: str = ""


ADJUSTMENTS: tuple[Adjustment, ...] = (
    # Older servers do not report usage while streaming.
    Adjustment(r"stream_options|include_usage", "stream_options"),
    # Some models do not stream.
    Adjustment(r"\bstream(?:ing)?\b", "stream"),
    # OpenAI's reasoning models use the newer name of the limit, and set the temperature themselves.
    Adjustment(r"max_completion_tokens", "max_tokens", replacement="max_completion_tokens"),
    Adjustment(r"\btemperature\b", "temperature"),
)


def find_adjustment(text: str, sent: Collection[str]) -> Adjustment | None:
    """Return the adjustment for the first sent parameter that an error message names."""
    rows = (row for row in ADJUSTMENTS if row.parameter in sent)
    return next((row for row in rows if re.search(row.pattern, text, re.IGNORECASE)), None)


# Some servers accept a system message only at the beginning of a conversation.
SYSTEM_REFUSED = re.compile(
    r"system\W{0,3}\s*(?:role|messages?|prompt)?[^.\n]{0,60}\b(?:at the (?:beginning|start)"
    r"|must be (?:the )?first|first message|only (?:be )?(?:at|the) )"
    r"|(?:first|only the first)[^.\n]{0,40}\bsystem\b"
    r"|unexpected role\W{0,3}system|system\W{0,3}\s*role (?:is )?not (?:supported|allowed)"
    r"|conversation roles must alternate",
    re.IGNORECASE,
)
_NOTE = "[A note from the program, not from the user]\n"


def with_leading_system(messages: Sequence[JsonObject]) -> list[dict[str, Any]]:
    """Return messages with one system message, at the beginning: further ones there are joined to
    the first, later ones become notes in the user's place. Messages before a note stay the same
    bytes, so that the provider's cache serves them.
    """
    adapted: list[dict[str, Any]] = []
    for message in messages:
        copy = dict(message)
        if adapted and copy.get("role") == "system":
            text = str(copy.get("content") or "")
            if len(adapted) == 1 and adapted[0].get("role") == "system":
                adapted[0]["content"] = f"{adapted[0].get('content') or ''}\n\n{text}".strip()
                continue
            copy = {**copy, "role": "user", "content": f"{_NOTE}{text}"}
        adapted.append(copy)
    return adapted


TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
"""Client error statuses worth a retry, in addition to all server errors."""

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
LONGEST_RETRY_AFTER_S = 120.0
"""The longest wait that a server can request; some request hours."""

SLICE_S = 0.2
"""How often a pause checks for cancellation."""


def delay_s(failures: int, retry_after_s: float | None, chance: Callable[[], float]) -> float:
    """Return how long to wait after this many failures: as the server requests, else doubling each
    time, with jitter.
    """
    if retry_after_s is not None:
        return min(retry_after_s, LONGEST_RETRY_AFTER_S)
    longest = min(FIRST_DELAY_S * 2.0 ** min(failures - 1, 16), LONGEST_DELAY_S)
    return longest * (1 - chance() / 2)


def find_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the delay in seconds that `Retry-After` requests, or None."""
    with suppress(ValueError):
        number = float(headers.get("retry-after", ""))
        return number if math.isfinite(number) and number >= 0 else None
    return None


def pause(seconds: float, sleep: Callable[[float], None], cancelled: Callable[[], bool]) -> None:
    """Wait in slices. Raise Cancelled as soon as the caller cancels."""
    while not cancelled():
        if seconds <= 0:
            return
        sleep(min(seconds, SLICE_S))
        seconds -= SLICE_S
    raise Cancelled("the request was cancelled between two tries")
