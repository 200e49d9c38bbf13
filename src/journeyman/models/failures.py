"""What a failed request to a remote model means, in sentences for people."""

import re
from importlib import import_module

import openai
from msgspec import Struct

from journeyman.models.reply_parser import NotAReply
from journeyman.text.display import readable_line
from journeyman.text.truncation import truncate

# Before version 3, the SDK does not translate errors of its HTTP library in the middle of a stream.
_http = import_module("httpx" if openai.__version__.startswith("2.") else "httpx2")
HTTPError: type[Exception] = _http.HTTPError

_EXCERPT_CHARACTERS = 300
_SCANNED = 20_000
"""How much of a response body is searched; error messages are at its beginning."""

_ADVICE = {
    401: "Check model.api_key.",
    402: "The account has no credit left: top it up, or choose another model.",
    403: "Check model.api_key.",
    404: "Check model.name ({name}) and model.base_url ({url}).",
    429: "The account's rate limit is reached: wait a while, or raise it.",
}
"""What the user should do about a status."""

_REJECTED = "The server rejects this request: check that {name} supports chat and tools."
_SERVER_ERROR = "The server has a problem: try again later, or choose another model."
_UNREACHABLE = "Check that the server is running and that model.base_url ({url}) is correct."
_NOT_AN_API = "Check that model.base_url ({url}) is the address of an API; it often ends in /v1."

CONTEXT_FULL = re.compile(
    # OpenAI, OpenRouter, vLLM, llama.cpp, LM Studio and Ollama, and what they pass on.
    r"context[ _](?:length|size|window|limit)|maximum prompt length"
    r"|(?:prompt|input) (?:is )?too long|token count[^.]{0,60} exceeds",
    re.IGNORECASE,
)
"""What error messages about a conversation that is too long have in common."""

_ROLES = re.compile(r"\bsystem\b|\broles?\b", re.IGNORECASE)

# OpenAI answers 429 then, but waiting does not help.
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient (?:balance|credits)", re.IGNORECASE)


class Failure(Struct, frozen=True, kw_only=True):
    """A request without a reply. `body` is what the server sent, unchanged; show it only through
    `cause`. `next_step` tells the user what to do, with fields for the model and its address.
    """

    reason: str
    next_step: str
    status: int | None = None
    body: str = ""

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


def failure_of(error: Exception) -> Failure:
    """Return the failure that an exception of a request means."""
    match error:
        case openai.APITimeoutError():
            return Failure(reason="the server sent nothing for too long", next_step=_UNREACHABLE)
        case openai.APIConnectionError() | HTTPError():
            cause = str(error.__cause__ or error)
            return Failure(reason="the connection failed", body=cause, next_step=_UNREACHABLE)
        case openai.APIStatusError():
            status, body = error.status_code, error.response.text[:_SCANNED]
            no_credit = _NO_CREDIT.search(body)
            default = _SERVER_ERROR if status >= 500 else _REJECTED
            return Failure(
                reason=f"the server returned status {status}",
                next_step=_ADVICE.get(402 if no_credit else status, default),
                status=status,
                body=body,
            )
        case openai.APIError():  # sent instead of a reply, or in the middle of one
            body = str(error.body)[:_SCANNED]
            reason = "the server returned an error"
            return Failure(reason=reason, body=body, next_step=_SERVER_ERROR)
        case NotAReply():
            return Failure(reason=str(error), next_step=_NOT_AN_API)
    return Failure(reason="the response is not JSON", next_step=_NOT_AN_API)
