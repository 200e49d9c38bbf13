"""A model behind an OpenAI-compatible endpoint. The openai SDK streams requests and retries them;
importing this module loads it, which is slow.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import openai

from journeyman.models.context_windows import find_context_tokens
from journeyman.models.event_thread import thread_events
from journeyman.models.failures import Failure, HTTPError, failure_of
from journeyman.models.model import Cancelled, JsonObject, Reply
from journeyman.models.reply_parser import NotAReply, ReplyParser, used_call_ids
from journeyman.records.errors import BadSetting, ContextFull, ModelUnavailable

_CONNECT_S = 10.0
_MOST_STREAMS = 3
"""How often a request is made whose reply breaks off, which the SDK does not retry."""
_NO_KEY = "none"
"""Sent if no key is set: local servers need none, but the SDK requires one."""
_NOTE = "[A note from the program, not from the user]\n"


class RemoteModel:
    """A model reached over HTTP. `timeout_s` limits how long a server may send nothing, and
    `retries` how often the SDK repeats a request that failed.
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
        retries: int = 4,
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
        self._timeout = openai.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s))
        self._retries = retries
        self._leading_system_only = False

    @cached_property
    def context_tokens(self) -> int | None:
        """The context window: as configured, or as the endpoint or the price data say."""
        if self._configured_tokens is not None:
            return self._configured_tokens
        return find_context_tokens(self.name, self._url, self._api_key)

    def ask(
        self,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject] = (),
        *,
        max_tokens: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Reply:
        """See `Model.ask`. A system message after the beginning, which some servers do not accept,
        is sent as a note after the first refusal.
        """
        has_later_system, tries = with_leading_system(messages) != [*messages], 0
        while True:
            tries += 1
            sent = with_leading_system(messages) if self._leading_system_only else messages
            body = self._body(sent, tools, max_tokens)
            parser = ReplyParser(used_call_ids(messages))
            outcome = self._try(body, parser, cancelled)
            if isinstance(outcome, Reply):
                return outcome
            if outcome.is_context_full:
                raise ContextFull(
                    f"The conversation does not fit the context window of {self.name} at "
                    f"{self._host}: {outcome.cause(self._api_key)}. Shorten it, or choose a model "
                    "with a larger window."
                )
            if has_later_system and outcome.is_about_roles and not self._leading_system_only:
                self._leading_system_only = True
                continue
            if not parser.has_begun or tries == _MOST_STREAMS:
                parts = urlsplit(self._url)
                url = f"{parts.scheme}://{self._host}{parts.path}"  # without a password or a query
                next_step = outcome.next_step.format(name=self.name, url=url)
                raise ModelUnavailable(
                    f"{self.name} at {self._host} gave no reply: {outcome.cause(self._api_key)}. "
                    f"{next_step}"
                )

    def _body(
        self, messages: Sequence[JsonObject], tools: Sequence[JsonObject], max_tokens: int | None
    ) -> bytes:
        body: dict[str, Any] = {"model": self.name, "messages": messages}
        if tools:
            body["tools"] = tools
        longest = min(filter(None, (max_tokens, self._max_tokens)), default=None)
        if longest is not None:
            # OpenAI's reasoning models know only the newer name, other servers only the older.
            is_openai = self.provider == "api.openai.com"
            body["max_completion_tokens" if is_openai else "max_tokens"] = longest
        if self._temperature is not None:
            body["temperature"] = self._temperature
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        # UTF-8 has no lone surrogates, which a tool may have read from somewhere.
        return json.dumps(body, ensure_ascii=False, default=dict).encode("utf-8", "replace")

    def _try(
        self,
        body: bytes,
        parser: ReplyParser,
        cancelled: Callable[[], bool],
    ) -> Reply | Failure:
        """Make one request, and return the reply or the failure."""
        failed: Exception | None = None

        def receive(emit: Callable[[object], bool]) -> None:
            def stop_if_left(_request: object) -> None:
                if emit(None):
                    raise Cancelled("the caller has left")

            try:
                with (
                    openai.OpenAI(
                        base_url=self._url,
                        api_key=self._api_key or _NO_KEY,
                        max_retries=self._retries,
                        timeout=self._timeout,
                        http_client=openai.DefaultHttpxClient(
                            event_hooks={"request": [stop_if_left]}
                        ),
                    ) as client,
                    client.post(
                        "/chat/completions",
                        content=body,
                        options={"headers": {"Content-Type": "application/json"}},
                        cast_to=object,
                        stream=True,
                        stream_cls=openai.Stream[object],
                    ) as events,
                ):
                    for event in events:
                        if emit(event):
                            return
            except (openai.OpenAIError, HTTPError, ValueError, Cancelled) as error:
                emit(error)

        with closing(thread_events(receive, cancelled=cancelled)) as arriving:
            for event in arriving:
                if isinstance(event, Exception):
                    failed = event
                elif event is not None:
                    parser.feed(event)
        # A complete reply stands, even if the usage that follows it was lost.
        if failed is not None and not parser.is_complete:
            return failure_of(failed)
        try:
            return parser.reply()
        except NotAReply as error:
            return failure_of(error)


def with_leading_system(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Return messages whose system messages are all at the beginning, as some chat templates want
    it: later ones become notes in the user's place. Messages before a note stay the same bytes, so
    that the provider's cache serves them.
    """
    first = next((at for at, one in enumerate(messages) if one.get("role") != "system"), 0)
    return [
        {**one, "role": "user", "content": f"{_NOTE}{one.get('content') or ''}"}
        if index > first and one.get("role") == "system"
        else one
        for index, one in enumerate(messages)
    ]


def _hosts(url: str) -> tuple[str, str]:
    """Return the host of an address, alone and with its port. Raise BadSetting."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        parts, is_valid = urlsplit(""), False
    if not is_valid or not parts.hostname:
        raise BadSetting(
            "The address of the model is not valid. Set model.base_url to one that begins with "
            "http:// or https:// and a host, such as http://127.0.0.1:8080/v1."
        )
    return parts.hostname, parts.netloc.rpartition("@")[2]
