"""Telegram's Bot API, the five calls that notices need. The bot's token is part of every address
there, so it is put in behind the client: no log line and no error ever has it.
"""

import json
from typing import Any, Final

import httpx2
import msgspec
from msgspec import Struct, field

from journeyman.confirm.notices.channel import NotTold

OFFICIAL: Final = "https://api.telegram.org"
LONGEST_MESSAGE: Final = 4096
LONGEST_ANSWER: Final = 200
_CALL_LIMIT_S: Final = 8.0
_POLL_GRACE_S: Final = 10.0


class ApiProblem(NotTold):
    """The API refused, or gave no answer: then `status` is 0. `retry_after_s` is what it asks to
    wait.
    """

    def __init__(self, reason: str, *, status: int = 0, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.status = status
        self.retry_after_s = retry_after_s


class User(Struct, frozen=True):
    """Who pressed. The number stays; names can be changed."""

    id: int


class Chat(Struct, frozen=True):
    """Where a message stands."""

    id: int
    type: str


class Message(Struct, frozen=True):
    """A message of the bot's. Telegram leaves the text out when it is old."""

    message_id: int
    chat: Chat
    text: str = ""


class Press(Struct, frozen=True):
    """The press of a button."""

    id: str
    user: User = field(name="from")
    message: Message | None = None
    data: str = ""


class Update(Struct, frozen=True):
    """One thing that happened, numbered by Telegram."""

    update_id: int
    callback_query: Press | None = None


class BotApi:
    """The calls that one bot makes, one at a time or from several threads."""

    def __init__(self, token: str, api_url: str = OFFICIAL) -> None:
        self._token = token
        self._api_url = api_url.rstrip("/")
        self._client = httpx2.Client(
            transport=_Sender(token), timeout=_CALL_LIMIT_S, trust_env=False
        )

    def close(self) -> None:
        self._client.close()

    def send_message(self, **message: Any) -> int:
        """Send a message; its id. Raises ApiProblem."""
        return int(self._call("sendMessage", message)["message_id"])

    def edit_message(self, **message: Any) -> None:
        """Change a message's text and buttons. Raises ApiProblem."""
        self._call("editMessageText", message)

    def answer(self, query_id: str, text: str, *, alert: bool) -> None:
        """Answer the press of a button. Raises ApiProblem."""
        self._call(
            "answerCallbackQuery",
            {"callback_query_id": query_id, "text": text[:LONGEST_ANSWER], "show_alert": alert},
        )

    def poller(self) -> httpx2.AsyncClient:
        """A client for `updates`, which can be cancelled while it waits."""
        return httpx2.AsyncClient(transport=_Poller(self._token), trust_env=False)

    async def updates(
        self, client: httpx2.AsyncClient, *, offset: int, wait_s: int
    ) -> list[Update]:
        """The presses of buttons from `offset` on, waiting for the first. Raises ApiProblem."""
        asked = {"offset": offset, "timeout": wait_s, "allowed_updates": ["callback_query"]}
        try:
            response = await client.post(
                f"{self._api_url}/getUpdates", json=asked, timeout=wait_s + _POLL_GRACE_S
            )
        except httpx2.HTTPError as error:
            raise _unreached(error) from None
        found = _result_of(response)
        read = [_update_of(one) for one in found] if isinstance(found, list) else []
        return [update for update in read if update is not None]

    def _call(self, method: str, arguments: dict[str, Any]) -> Any:
        try:
            response = self._client.post(f"{self._api_url}/{method}", json=arguments)
        except httpx2.HTTPError as error:
            raise _unreached(error) from None
        return _result_of(response)


class _Sender(httpx2.HTTPTransport):
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return super().handle_request(_with_token(request, self._token))


class _Poller(httpx2.AsyncHTTPTransport):
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await super().handle_async_request(_with_token(request, self._token))


def _with_token(request: httpx2.Request, token: str) -> httpx2.Request:
    before, _, method = request.url.path.rpartition("/")
    return httpx2.Request(
        request.method,
        request.url.copy_with(path=f"{before}/bot{token}/{method}"),
        headers=request.headers,
        stream=request.stream,
        extensions=request.extensions,
    )


def _update_of(received: object) -> Update | None:
    """An update as far as it can be read: its number counts even when the rest is odd."""
    try:
        return msgspec.convert(received, Update)
    except msgspec.ValidationError:
        number = received.get("update_id") if isinstance(received, dict) else None
        return Update(update_id=number) if isinstance(number, int) else None


def _unreached(error: httpx2.HTTPError) -> ApiProblem:
    return ApiProblem(f"Telegram could not be reached ({type(error).__name__})")


def _result_of(response: httpx2.Response) -> Any:
    try:
        answer = response.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        answer = None
    if isinstance(answer, dict) and answer.get("ok") is True:
        return answer.get("result")
    parameters = answer.get("parameters") if isinstance(answer, dict) else None
    wait = parameters.get("retry_after", 0) if isinstance(parameters, dict) else 0
    raise ApiProblem(
        f"Telegram answered {response.status_code}",
        status=response.status_code,
        retry_after_s=float(wait) if isinstance(wait, int | float) else 0.0,
    )
