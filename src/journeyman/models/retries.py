"""Classifies failed requests to a remote model, and decides whether, when and how to retry."""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import openai
from msgspec import Struct

from journeyman.models.connection import http
from journeyman.models.model import Cancelled, JsonObject
from journeyman.models.reply_parser import NotAReply
from journeyman.text.display import readable_line
from journeyman.text.truncation import truncate

_EXCERPT_CHARACTERS = 300
_SCANNED = 20_000
"""How much of a response body is searched; error messages are at its beginning."""


class Failure(Struct, frozen=True, kw_only=True):
    """A request without a reply. `body` is what the server sent, unchanged; show it only through
    `cause`. `next_step` tells the user what to do, with fields for the model and its address.
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

    @property
    def is_about_roles(self) -> bool:
        """Whether the server does not accept the roles of the messages, or may not."""
        return self.status in (400, 422, 500) and bool(_ROLES.search(self.body))

    def cause(self, secret: str) -> str:
        """Return the reason and the beginning of the response, without the secret."""
        body = self.body.replace(secret, "[api key]") if secret else self.body
        excerpt = truncate(readable_line(body[: 4 * _EXCERPT_CHARACTERS]), _EXCERPT_CHARACTERS)
        return f"{self.reason}, “{excerpt}”" if excerpt else self.reason


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

_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
"""Client error statuses worth a retry, in addition to all server errors."""


def failure_of(error: Exception, timeout_s: float) -> Failure:
    """Return the failure that an exception of a request means."""
    if isinstance(error, TimeoutError | openai.APITimeoutError | http.TimeoutException):
        return Failure(reason=f"no data for {timeout_s:g} seconds", next_step=_UNREACHABLE)
    if isinstance(error, openai.APIConnectionError | http.HTTPError | OSError):
        cause = str(error.__cause__ or error)
        return Failure(reason="the connection failed", body=cause, next_step=_UNREACHABLE)
    if isinstance(error, openai.APIError):
        return _api_failure(error)
    if isinstance(error, NotAReply):
        return Failure(reason=str(error), next_step=_SERVER_ERROR)
    body = error.doc if isinstance(error, json.JSONDecodeError) else ""
    return Failure(reason="the response is not JSON", body=body[:_SCANNED], next_step=_NOT_AN_API)


def _api_failure(error: openai.APIError) -> Failure:
    """Return the failure for an error status, or for an error sent with status 200, which may
    contain the status that is meant.
    """
    reason, delay = "the server returned an error", None
    if isinstance(error, openai.APIStatusError):
        status, body = error.status_code, error.response.text
        reason = f"the server returned status {status}"
        with suppress(ValueError):
            delay = float(error.response.headers.get("retry-after", ""))
    else:
        body = error.body if isinstance(error.body, str) else json.dumps(error.body)
        code = error.body.get("code") if isinstance(error.body, Mapping) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
    no_credit = _NO_CREDIT.search(body[:_SCANNED])
    is_transient = status in _TRANSIENT_STATUSES or status >= 500
    default = _SERVER_ERROR if status >= 500 else _LATER if is_transient else _REJECTED
    return Failure(
        reason=reason,
        next_step=_ADVICE.get(402 if no_credit else status, default),
        status=status,
        body=body[:_SCANNED],
        is_transient=is_transient and not no_credit,
        retry_after_s=delay,
    )


_ROLES = re.compile(r"\bsystem\b|\broles?\b", re.IGNORECASE)

# Phrases in error messages that mean that the conversation is too long.
CONTEXT_FULL = re.compile(
    # The error code of OpenAI, Azure and llama.cpp.
    r"context_length_exceeded|exceed_context_size|context_window_exceeded"
    # OpenAI, vLLM, DeepSeek, xAI, SGLang, OpenRouter.
    r"|maximum (?:context|prompt|input)[ _]length"
    # llama.cpp, LM Studio, Bedrock, Gemini.
    r"|exceed(?:s|ed|ing)? (?:\w+ ){0,3}(?:context|token|input|prompt)\w*"
    r"[ _](?:size|length|window|limit|count)|token count[^.]{0,60} exceeds"
    # Anthropic, Bedrock, Mistral, Ollama.
    r"|(?:prompt|input|request|messages?|conversation|context)(?: \w+){0,2}"
    r" (?:is|are) too (?:long|large)\b"
    # Cohere, Groq and small servers.
    r"|too many (?:input |prompt )?tokens\b(?! per)|reduce the length of the (?:messages|prompt)",
    re.IGNORECASE,
)

# OpenAI returns 429, but waiting does not help; "exceeded your quota" alone can mean a busy minute.
_NO_CREDIT = re.compile(
    r"insufficient_quota|insufficient (?:balance|credits|funds)|credit balance is too low",
    re.IGNORECASE,
)


class Adjustment(NamedTuple):
    """A parameter that some servers reject by name: it is left out, or sent under another name."""

    pattern: str
    parameter: str
    replacement: str = ""


_ADJUSTMENTS: tuple[Adjustment, ...] = (
    # Older servers do not report usage while streaming.
    Adjustment(r"stream_options|include_usage", "stream_options"),
    # OpenAI's reasoning models use the newer name of the limit, and set the temperature themselves.
    Adjustment(r"max_completion_tokens", "max_tokens", replacement="max_completion_tokens"),
    Adjustment(r"\btemperature\b", "temperature"),
)


def find_adjustment(failure: Failure, sent: Collection[str]) -> Adjustment | None:
    """Return the adjustment for the first sent parameter that an error message names."""
    if failure.status not in (400, 422):
        return None
    rows = (row for row in _ADJUSTMENTS if row.parameter in sent)
    return next((row for row in rows if re.search(row.pattern, failure.body, re.IGNORECASE)), None)


_NOTE = "[A note from the program, not from the user]\n"


def with_leading_system(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Return messages whose system messages are all at the beginning, as some servers want it:
    later ones become notes in the user's place. Messages before a note stay the same bytes, so that
    the provider's cache serves them.
    """
    first = next((at for at, one in enumerate(messages) if one.get("role") != "system"), 0)
    return [
        {**one, "role": "user", "content": f"{_NOTE}{one.get('content') or ''}"}
        if index > first and one.get("role") == "system"
        else one
        for index, one in enumerate(messages)
    ]


FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
LONGEST_RETRY_AFTER_S = 120.0
"""The longest wait that a server can request; some request hours."""

_SLICE_S = 0.2
"""How often a pause checks for cancellation."""


def delay_s(failures: int, retry_after_s: float | None, chance: Callable[[], float]) -> float:
    """Return how long to wait after this many failures: as the server requests, else doubling each
    time, with jitter.
    """
    if retry_after_s is not None and retry_after_s >= 0:
        return min(retry_after_s, LONGEST_RETRY_AFTER_S)
    longest = min(FIRST_DELAY_S * 2.0 ** min(failures - 1, 16), LONGEST_DELAY_S)
    return longest * (1 - chance() / 2)


def pause(seconds: float, sleep: Callable[[float], None], cancelled: Callable[[], bool]) -> None:
    """Wait in slices. Raise Cancelled as soon as the caller cancels."""
    while not cancelled():
        if seconds <= 0:
            return
        sleep(min(seconds, _SLICE_S))
        seconds -= _SLICE_S
    raise Cancelled("the request was cancelled between two tries")
