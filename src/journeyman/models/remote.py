"""A model behind any OpenAI-compatible endpoint. Requests are streamed, made again when that can
help, and given up when the caller says so; what servers send is read in `reading`, what they refuse
is told apart in `failure`. Loading this module loads the openai SDK, which is slow.
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

from journeyman.models.failure import Failure, excerpt, failure_of, too_quiet
from journeyman.models.line import Line, RequestFailed, TooQuiet, certificates, listen
from journeyman.models.model import JsonObject, Reply
from journeyman.models.reading import NotAReply, ReplyReader, used_call_ids
from journeyman.models.refusals import Adjustment, find_adjustment
from journeyman.models.retries import delay_s, pause
from journeyman.models.windows import find_context_tokens
from journeyman.records.errors import BadSetting, ContextFull, ModelUnavailable

CONNECT_S = 10.0
METADATA_S = 5.0
NO_KEY = "none"
"""What is sent where no key is set: local servers want none, and the SDK wants one."""


class RemoteModel:
    """A model that is asked over HTTP.

    `timeout_s` is how long a server may send nothing at all; `attempts` is how often a request is
    made before it fails. A try that breaks off leaves nothing in the reply, but `on_text` has
    heard its beginning by then and hears the next try from its own beginning.
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
        self._name = name
        self._url = base_url.strip().rstrip("/")
        self._provider, self._host = _hosts(self._url)
        self._api_key = _checked_key(api_key)
        self._configured_tokens = context_tokens
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._timeout_s = timeout_s
        self._attempts = max(1, attempts)
        self._sleep, self._clock, self._chance = sleep, clock, chance
        self._adjustments: tuple[Adjustment, ...] = ()

    def __repr__(self) -> str:
        return f"RemoteModel(name={self._name!r}, provider={self._provider!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def provider(self) -> str:
        """The host that runs the model."""
        return self._provider

    @cached_property
    def context_tokens(self) -> int | None:
        """The size of the window: as configured, else what the endpoint or a table says. Asked
        for once, when it is first wanted.
        """
        if self._configured_tokens is not None:
            return self._configured_tokens
        return find_context_tokens(self._name, self._url, self._api_key, timeout_s=METADATA_S)

    def ask(
        self,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject] = (),
        *,
        max_tokens: int | None = None,
        on_text: Callable[[str], None] = lambda _text: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Reply:
        """The reply to these messages; see Model. A parameter that the server refuses by name is
        left out from then on.
        """
        used = used_call_ids(messages)
        adjustments, tries = self._adjustments, 0
        while True:
            longest = min(filter(None, (max_tokens, self._max_tokens)), default=None)
            body = self._body(messages, tools, longest, adjustments)
            came = self._try(body, used, on_text, cancelled)
            if isinstance(came, Reply):
                self._adjustments = adjustments
                return came
            if came.is_context_full:
                raise ContextFull(self._say_full(came))
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
        body: dict[str, Any] = {"model": self._name, "messages": [dict(one) for one in messages]}
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
                if "json" in kind or "html" in kind:
                    yield _whole_answer(response)
                else:
                    yield from Stream(cast_to=object, response=response, client=client)

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
        next_step = failure.next_step.format(name=self._name, url=self._url_shown)
        found = f"{self._name} at {self._host} gave no reply: {self._came(failure)}{often}."
        return f"{found} {next_step}"

    def _say_full(self, failure: Failure) -> str:
        return (
            f"The conversation does not fit the window of {self._name} at {self._host}: "
            f"{self._came(failure)}. Shorten it, or choose a model with a larger window."
        )

    def _came(self, failure: Failure) -> str:
        shown = excerpt(failure.body, self._api_key)
        return f"{failure.told}, “{shown}”" if shown else failure.told

    @property
    def _url_shown(self) -> str:
        """The address without a user, a password or a query in it."""
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{self._host}{parts.path}"


def _whole_answer(response: httpx2.Response) -> object:
    answer = json.loads(response.read())
    if isinstance(answer, Mapping) and answer.get("error"):
        raise APIError("an error with a status of success", response.request, body=answer["error"])
    return answer


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


def _checked_key(api_key: str) -> str:
    """The key, if a header can carry it; the error does not repeat it."""
    key = api_key.strip()
    if not key.isascii() or not key.isprintable():
        raise BadSetting(
            "The key of the model has characters that no key has. Set model.api_key again."
        )
    return key
