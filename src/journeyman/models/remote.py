"""A model behind any OpenAI-compatible endpoint. Requests are streamed, made again when that can
help, and given up when the caller says so. Loading this module loads the openai SDK, which is slow.
"""

import json
import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
from openai import APIError, OpenAI, Stream

from journeyman.models.failures import (
    Adjustment,
    Failure,
    delay_s,
    excerpt,
    failure_of,
    find_adjustment,
    pause,
    too_quiet,
)
from journeyman.models.line import Line, RequestFailed, TooQuiet, certificates, listen
from journeyman.models.model import JsonObject, Reply
from journeyman.models.reply_reader import NotAReply, ReplyReader, used_call_ids
from journeyman.models.windows import find_context_tokens
from journeyman.records.errors import BadSetting, ContextFull, ModelUnavailable

CONNECT_S = 10.0
METADATA_S = 5.0
NO_KEY = "none"
"""What is sent where no key is set: local servers want none, and the SDK wants one."""


class RemoteModel:
    """A model that is asked over HTTP, `attempts` times at most; `timeout_s` is how long a server
    may send nothing. `on_text` hears the next try from its own beginning.
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
            raise BadSetting(
                "The key of the model has characters that no key has. Set model.api_key again."
            )
        self._configured_tokens = context_tokens
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._timeout_s = timeout_s
        self._attempts = max(1, attempts)
        self._sleep, self._clock, self._chance = sleep, clock, chance
        self._adjustments: tuple[Adjustment, ...] = ()

    def __repr__(self) -> str:
        return f"RemoteModel(name={self.name!r}, provider={self.provider!r})"

    @cached_property
    def context_tokens(self) -> int | None:
        """The size of the window: as configured, else what the endpoint or price data says."""
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
        """See `Model.ask`. A parameter that the server refuses by name is left out from then on."""
        used = used_call_ids(messages)
        longest = min(filter(None, (max_tokens, self._max_tokens)), default=None)
        adjustments, tries = self._adjustments, 0
        while True:
            body = self._body(messages, tools, longest, adjustments)
            came = self._try(body, used, on_text, cancelled)
            if isinstance(came, Reply):
                self._adjustments = adjustments
                return came
            if came.is_context_full:
                raise ContextFull(
                    f"The conversation does not fit the window of {self.name} at {self._host}: "
                    f"{self._came(came)}. Shorten it, or choose a model with a larger window."
                )
            if came.status in (400, 422) and (row := find_adjustment(came.body, body)):
                adjustments = (*adjustments, row)
                continue
            tries += 1
            if not came.passes or tries >= self._attempts:
                raise ModelUnavailable(self._say_failed(came, tries))
            pause(delay_s(tries, came.asked_delay_s, self._chance), self._sleep, cancelled)

    def _body(
        self,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject],
        max_tokens: int | None,
        adjustments: Sequence[Adjustment],
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.name, "messages": [dict(one) for one in messages]}
        if tools:
            body["tools"] = [dict(tool) for tool in tools]
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        if self._temperature is not None:
            body["temperature"] = self._temperature
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        for row in adjustments:
            value = body.pop(row.parameter, None)
            if row.instead and value is not None:
                body[row.instead] = value
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
        """One request: its reply, or what came instead of one."""
        # Half characters, which a tool may have read from somewhere, have no place in UTF-8.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        reader = ReplyReader()
        heard = listen(
            lambda line: self._events(line, content),
            cancelled=cancelled,
            timeout_s=self._timeout_s,
            clock=self._clock,
        )
        try:
            with closing(heard):
                for event in heard:
                    if text := reader.take(event):
                        on_text(text)
        except TooQuiet:
            return too_quiet(self._timeout_s)
        except RequestFailed as failed:
            # All has been said already; what broke was the count that comes after the reply.
            if not reader.is_complete:
                return failure_of(failed.error, self._timeout_s)
        try:
            return reader.reply(used_ids)
        except NotAReply as error:
            return failure_of(error, self._timeout_s)

    def _events(self, line: Line, content: bytes) -> Generator[object]:
        """What the server sends, event by event; a server that does not stream sends one."""
        with self._client(line) as client:
            streamed = client.post(
                "/chat/completions",
                content=content,
                options={"headers": {"Content-Type": "application/json"}},
                cast_to=httpx2.Response,
                stream=True,
                stream_cls=Stream[object],
            )
            # The SDK hands out the plain response where it is asked for, whatever its types say.
            with closing(cast("httpx2.Response", streamed)) as response:
                kind = response.headers.get("content-type", "").lower()
                if "json" not in kind and "html" not in kind:
                    yield from Stream(cast_to=object, response=response, client=client)
                    return
                answer = json.loads(response.read())
                if isinstance(answer, Mapping) and (error := answer.get("error")):
                    said = "an error with a status of success"
                    raise APIError(said, response.request, body=error)
                yield answer

    def _client(self, line: Line) -> OpenAI:
        """A client with a connection of its own, which can be cut without harm to others."""
        timeout = httpx2.Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s))
        return OpenAI(
            base_url=self._url,
            api_key=self._api_key or NO_KEY,
            max_retries=0,
            timeout=timeout,
            http_client=httpx2.Client(
                timeout=timeout,
                verify=certificates(),
                follow_redirects=True,
                event_hooks={"request": [line.watch]},
            ),
        )

    def _say_failed(self, failure: Failure, tries: int) -> str:
        often = f" ({tries} tries)" if tries > 1 else ""
        parts = urlsplit(self._url)
        shown = f"{parts.scheme}://{self._host}{parts.path}"  # without a password or a query
        next_step = failure.next_step.format(name=self.name, url=shown)
        found = f"{self.name} at {self._host} gave no reply: {self._came(failure)}{often}."
        return f"{found} {next_step}"

    def _came(self, failure: Failure) -> str:
        shown = excerpt(failure.body, self._api_key)
        return f"{failure.told}, “{shown}”" if shown else failure.told


def _hosts(url: str) -> tuple[str, str]:
    """The host of an address, alone and with the port that it names."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise BadSetting(
            "The address of the model cannot be used. Set model.base_url to one that begins with "
            "http:// or https:// and a host, such as http://127.0.0.1:8080/v1."
        )
    shown = f"[{host}]" if ":" in host else host
    return host, shown if port is None else f"{shown}:{port}"
