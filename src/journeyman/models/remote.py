"""A model behind an OpenAI-compatible endpoint. Requests are streamed, retried where that can help,
and can be cancelled. Importing this module loads the openai SDK, which is slow.
"""

import json
import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlsplit

from openai import APIError, OpenAI, Stream

from journeyman.models.context_windows import find_context_tokens
from journeyman.models.model import JsonObject, Reply
from journeyman.models.reply_parser import NotAReply, ReplyParser, used_call_ids
from journeyman.models.retries import (
    SYSTEM_REFUSED,
    Adjustment,
    Failure,
    delay_s,
    excerpt,
    failure_of,
    find_adjustment,
    pause,
    timeout_failure,
    with_leading_system,
)
from journeyman.models.streaming_request import (
    Connection,
    ReadTimeout,
    RequestFailed,
    certificates,
    http,
    stream_events,
)
from journeyman.records.errors import BadSetting, ContextFull, ModelUnavailable

CONNECT_S = 10.0
METADATA_S = 5.0
NO_KEY = "none"
"""Sent if no key is set: local servers need none, but the SDK requires one."""


class RemoteModel:
    """A model reached over HTTP, with up to `attempts` tries per request. `timeout_s` limits how
    long a server may send nothing. After a failed try, `on_text` receives the next one from its
    start.
    """

    def __init__(
        self,
        *,
        name: str,
        base_url: str,
        api_key: str = "",
        context_tokens: int | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        timeout_s: float = 300.0,
        attempts: int = 5,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self._url = base_url.strip().rstrip("/")
        self.provider, self._host = _hosts(self._url)
        self._api_key = api_key.strip()
        if not self._api_key.isascii() or not self._api_key.isprintable():
            raise BadSetting("model.api_key contains characters that no API key has. Set it again.")
        self._configured_tokens = context_tokens
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._timeout_s = timeout_s
        self._attempts = max(1, attempts)
        self._sleep, self._clock, self._chance = sleep, clock, chance
        self._adjustments: tuple[Adjustment, ...] = ()
        self._leading_system_only = False

    @cached_property
    def context_tokens(self) -> int | None:
        """The size of the context window: as configured, else from the endpoint or price data."""
        if self._configured_tokens is not None:
            return self._configured_tokens
        return find_context_tokens(self.name, self._url, self._api_key, timeout_s=METADATA_S)

    def ask(
        self,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject] = (),
        *,
        max_tokens: int | None = None,
        on_text: Callable[[str], None] = lambda _text: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Reply:
        """See `Model.ask`. A parameter that the server rejects by name is left out from then on,
        and a system message that it rejects because of its place is sent in another form.
        """
        used = used_call_ids(messages)
        leading_only = self._leading_system_only
        longest = min(filter(None, (max_tokens, self._max_tokens)), default=None)
        adjustments, tries = self._adjustments, 0
        while True:
            sent = with_leading_system(messages) if leading_only else messages
            body = self._body(sent, tools, longest, adjustments)
            outcome = self._try(body, used, on_text, cancelled)
            if isinstance(outcome, Reply):
                self._adjustments = adjustments
                self._leading_system_only = leading_only
                return outcome
            if outcome.is_context_full:
                raise ContextFull(
                    f"The conversation does not fit the context window of {self.name} at "
                    f"{self._host}: {self._cause(outcome)}. Shorten it, or choose a model with a "
                    "larger window."
                )
            is_refusal = outcome.status in (400, 422, 500) and SYSTEM_REFUSED.search(outcome.body)
            has_later = any(message.get("role") == "system" for message in messages[1:])
            if is_refusal and not leading_only and has_later:
                leading_only = True
                continue
            if outcome.status in (400, 422) and (row := find_adjustment(outcome.body, body)):
                adjustments = (*adjustments, row)
                continue
            tries += 1
            if not outcome.is_transient or tries >= self._attempts:
                raise ModelUnavailable(self._failure_message(outcome, tries))
            delay = delay_s(tries, outcome.retry_after_s, self._chance)
            pause(delay, self._sleep, cancelled)

    def _body(
        self,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject],
        max_tokens: int | None,
        adjustments: Sequence[Adjustment],
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [dict(message) for message in messages],
        }
        if tools:
            body["tools"] = [dict(tool) for tool in tools]
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        if self._temperature is not None:
            body["temperature"] = self._temperature
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        for row in adjustments:
            value = body.pop(row.parameter, None)
            if row.replacement and value is not None:
                body[row.replacement] = value
        if "stream" not in body:
            body.pop("stream_options", None)
        return body

    def _try(
        self,
        body: dict[str, Any],
        used_ids: frozenset[str],
        on_text: Callable[[str], None],
        cancelled: Callable[[], bool],
    ) -> Reply | Failure:
        """Make one request, and return the reply or the failure."""
        # UTF-8 has no lone surrogates, which a tool may have read from somewhere.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        parser = ReplyParser()
        events = stream_events(
            lambda connection: self._events(connection, content),
            cancelled=cancelled,
            timeout_s=self._timeout_s,
            clock=self._clock,
        )
        try:
            with closing(events):
                for event in events:
                    if text := parser.feed(event):
                        on_text(text)
        except ReadTimeout:
            return timeout_failure(self._timeout_s)
        except RequestFailed as failed:
            # A complete reply stands, even if the usage that follows it was lost.
            if not parser.is_complete:
                return failure_of(failed.error, self._timeout_s)
        try:
            return parser.reply(used_ids)
        except NotAReply as error:
            return failure_of(error, self._timeout_s)

    def _events(self, connection: Connection, content: bytes) -> Generator[object]:
        """Yield the events that the server sends; a server that does not stream sends one."""
        with self._client(connection) as client:
            streamed = client.post(
                "/chat/completions",
                content=content,
                options={"headers": {"Content-Type": "application/json"}},
                cast_to=http.Response,
                stream=True,
                stream_cls=Stream[object],
            )
            # With this `cast_to`, the SDK returns the plain response, whatever its types say.
            with closing(cast("http.Response", streamed)) as response:
                kind = response.headers.get("content-type", "").lower()
                if "json" not in kind and "html" not in kind:
                    yield from Stream(cast_to=object, response=response, client=client)
                    return
                answer = json.loads(response.read())
                if isinstance(answer, Mapping) and (error := answer.get("error")):
                    raise APIError("an error with status 200", response.request, body=error)
                yield answer

    def _client(self, connection: Connection) -> OpenAI:
        """Return a client with its own connection, which can be closed without affecting others."""
        timeout = http.Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s))
        return OpenAI(
            base_url=self._url,
            api_key=self._api_key or NO_KEY,
            max_retries=0,
            timeout=timeout,
            http_client=http.Client(
                timeout=timeout,
                verify=certificates(),
                follow_redirects=True,
                event_hooks={"request": [connection.watch]},
            ),
        )

    def _failure_message(self, failure: Failure, tries: int) -> str:
        count = f" ({tries} tries)" if tries > 1 else ""
        parts = urlsplit(self._url)
        address = f"{parts.scheme}://{self._host}{parts.path}"  # without a password or a query
        next_step = failure.next_step.format(name=self.name, url=address)
        problem = f"{self.name} at {self._host} gave no reply: {self._cause(failure)}{count}."
        return f"{problem} {next_step}"

    def _cause(self, failure: Failure) -> str:
        body = excerpt(failure.body, self._api_key)
        return f"{failure.reason}, “{body}”" if body else failure.reason


def _hosts(url: str) -> tuple[str, str]:
    """Return the host of an address, alone and with its port."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise BadSetting(
            "The address of the model is not valid. Set model.base_url to one that begins with "
            "http:// or https:// and a host, such as http://127.0.0.1:8080/v1."
        )
    name = f"[{host}]" if ":" in host else host
    return host, name if port is None else f"{name}:{port}"
