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

from openai import APIError, OpenAI, OpenAIError, Stream

from journeyman.models.connection import Connection, http
from journeyman.models.context_windows import find_context_tokens
from journeyman.models.event_thread import thread_events
from journeyman.models.model import JsonObject, Reply
from journeyman.models.reply_parser import NotAReply, ReplyParser, used_call_ids
from journeyman.models.retries import (
    Adjustment,
    Failure,
    delay_s,
    failure_of,
    find_adjustment,
    pause,
    with_leading_system,
)
from journeyman.records.errors import BadSetting, ContextFull, ModelUnavailable

METADATA_S = 5.0
_NO_KEY = "none"
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
        self._adjustments: list[Adjustment] = []
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
        and so is a system message after the beginning, which some servers do not accept: it is
        sent as a note.
        """
        used, tries = used_call_ids(messages), 0
        longest = min(filter(None, (max_tokens, self._max_tokens)), default=None)
        has_later_system = with_leading_system(messages) != [*messages]
        while True:
            sent = with_leading_system(messages) if self._leading_system_only else messages
            body = self._body(sent, tools, longest)
            outcome = self._try(body, used, on_text, cancelled)
            if isinstance(outcome, Reply):
                return outcome
            if outcome.is_context_full:
                raise ContextFull(
                    f"The conversation does not fit the context window of {self.name} at "
                    f"{self._host}: {outcome.cause(self._api_key)}. Shorten it, or choose a model "
                    "with a larger window."
                )
            if adjustment := find_adjustment(outcome, body):
                self._adjustments.append(adjustment)
                continue
            if has_later_system and outcome.is_about_roles and not self._leading_system_only:
                self._leading_system_only = True
                continue
            tries += 1
            if not outcome.is_transient or tries >= self._attempts:
                raise ModelUnavailable(self._failure_message(outcome, tries))
            delay = delay_s(tries, outcome.retry_after_s, self._chance)
            pause(delay, self._sleep, cancelled)

    def _body(
        self, messages: Sequence[JsonObject], tools: Sequence[JsonObject], max_tokens: int | None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.name, "messages": messages}
        if tools:
            body["tools"] = tools
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        if self._temperature is not None:
            body["temperature"] = self._temperature
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        for row in self._adjustments:
            value = body.pop(row.parameter, None)
            if row.replacement and value is not None:
                body[row.replacement] = value
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
        content = json.dumps(body, ensure_ascii=False, default=dict)
        connection, parser = Connection(self._timeout_s), ReplyParser()
        failed: Exception | None = None

        def receive(emit: Callable[[object], bool]) -> None:
            try:
                with closing(self._events(connection, content.encode("utf-8", "replace"))) as found:
                    for event in found:
                        if emit(event):
                            return
            # What a server can cause: errors of the client and of the connection, invalid JSON
            # (ValueError) or JSON nested too deeply, a body closed while being read (RuntimeError).
            except (OpenAIError, http.HTTPError, OSError, ValueError, RuntimeError) as error:
                emit(error)

        events = thread_events(
            receive,
            cancelled=cancelled,
            leave=connection.close,
            timeout_s=self._timeout_s,
            clock=self._clock,
        )
        try:
            with closing(events):
                for event in events:
                    if isinstance(event, Exception):
                        failed = event
                    elif text := parser.feed(event):
                        on_text(text)
        except TimeoutError as error:
            return failure_of(error, self._timeout_s)
        # A complete reply stands, even if the usage that follows it was lost.
        if failed is not None and not parser.is_complete:
            return failure_of(failed, self._timeout_s)
        try:
            return parser.reply(used_ids)
        except NotAReply as error:
            return failure_of(error, self._timeout_s)

    def _events(self, connection: Connection, content: bytes) -> Generator[object]:
        """Yield the events that the server sends; a server that does not stream sends one."""
        with OpenAI(
            base_url=self._url,
            api_key=self._api_key or _NO_KEY,
            max_retries=0,
            timeout=connection.timeout,
            http_client=connection.client(),
        ) as client:
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

    def _failure_message(self, failure: Failure, tries: int) -> str:
        count = f" ({tries} tries)" if tries > 1 else ""
        parts = urlsplit(self._url)
        address = f"{parts.scheme}://{self._host}{parts.path}"  # without a password or a query
        next_step = failure.next_step.format(name=self.name, url=address)
        cause = failure.cause(self._api_key) + count
        return f"{self.name} at {self._host} gave no reply: {cause}. {next_step}"


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
