"""What became of a request that got no reply: what came instead, whether asking again can help, and
what a person should do about it. Text of a server is made harmless here, and a key that it repeats
is taken out.
"""

import json
import re
import time
from collections.abc import Mapping
from typing import NamedTuple

import httpx2
import openai
from msgspec import Struct

from journeyman.models.reading import NotAReply
from journeyman.models.refusals import CONTEXT_FULL, NO_CREDIT, says_one_of
from journeyman.models.retries import find_asked_delay, passes
from journeyman.text.invisible import UNSEEN

EXCERPT_LIMIT = 300
_SCANNED = 20_000
"""How much of a body is looked at; what a refusal says stands at its beginning."""

_UNSHOWN = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{UNSEEN}]+")


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
        return self.status == 413 or says_one_of(CONTEXT_FULL, self.body)


class Advice(NamedTuple):
    """What to do about a status."""

    statuses: tuple[int, ...]
    text: str


ADVICE: tuple[Advice, ...] = (
    Advice((401, 403), "Check model.api_key."),
    Advice((402,), "The account has no credit left: top it up, or choose another model."),
    Advice((404,), "Check model.name ({name}) and model.base_url ({url})."),
    Advice((429,), "The limit of the account is reached: wait a while, or raise it."),
    Advice((408, 409, 425), "Try again later."),
)
_REFUSED = "The server does not take this request: check that {name} can chat and use tools."
_BROKEN = "The server has a problem of its own: try again later, or choose another model."
_UNREACHED = "Check that the server runs and that model.base_url ({url}) is right."
_NO_API = "Check that model.base_url ({url}) is the address of its API, which often ends in /v1."


def _advice(status: int, body: str) -> str:
    if says_one_of(NO_CREDIT, body):
        status = 402
    for row in ADVICE:
        if status in row.statuses:
            return row.text
    return _REFUSED if status < 500 else _BROKEN


def excerpt(text: str, secret: str) -> str:
    """The beginning of what a server sent, on one line, without the secret and without characters
    that do something to a terminal.
    """
    if secret:
        text = text.replace(secret, "[api key]")
    line = " ".join(_UNSHOWN.sub(" ", text[: 4 * EXCERPT_LIMIT]).split())
    return line if len(line) <= EXCERPT_LIMIT else line[: EXCERPT_LIMIT - 1] + "…"


def failure_of(error: Exception, timeout_s: float) -> Failure:
    """What an error of a request means."""
    if isinstance(error, openai.APIStatusError):
        return _refusal(error)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return too_quiet(timeout_s)
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | OSError):
        cause = str(error.__cause__ or error)
        return Failure(told="the connection failed", body=cause, next_step=_UNREACHED)
    if isinstance(error, openai.APIError):
        return _error_in_answer(error)
    if isinstance(error, NotAReply):
        return Failure(told=str(error), next_step=_BROKEN)
    sent = error.doc if isinstance(error, json.JSONDecodeError) else ""
    return Failure(told="what came is not JSON", body=sent[:_SCANNED], next_step=_NO_API)


def too_quiet(timeout_s: float) -> Failure:
    """The failure of a request to which nothing was said."""
    return Failure(told=f"nothing came for {timeout_s:g} seconds", next_step=_UNREACHED)


def _refusal(error: openai.APIStatusError) -> Failure:
    status, body = error.status_code, error.response.text[:_SCANNED]
    return Failure(
        told=f"it answered {status}",
        next_step=_advice(status, body),
        status=status,
        body=body,
        passes=passes(status) and not says_one_of(NO_CREDIT, body),
        asked_delay_s=find_asked_delay(error.response.headers, time.time()),
    )


def _error_in_answer(error: openai.APIError) -> Failure:
    """An error that came with a status of success, because the stream had begun or because a
    server does so. Some name the status they mean.
    """
    body = error.body if isinstance(error.body, str) else json.dumps(error.body)
    code = error.body.get("code") if isinstance(error.body, Mapping) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return Failure(
        told="it answered with an error",
        next_step=_advice(status, body),
        status=status,
        body=body[:_SCANNED],
        passes=passes(status) and not says_one_of(NO_CREDIT, body),
    )
