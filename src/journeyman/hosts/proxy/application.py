"""The proxy as an application: reads each request, adds the opening of its session, forwards it,
and has the answer recorded.
"""

import asyncio
import logging
import os
import time
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx2
from msgspec import Struct

from journeyman.hosts.openings import OpeningRequest
from journeyman.hosts.proxy.answers import (
    READABLE_ENCODINGS,
    Answer,
    decompressed,
    read_answer,
)
from journeyman.hosts.proxy.forwarding import (
    Disconnected,
    Forwarder,
    Headers,
    Receive,
    Relayed,
    Send,
    Upstream,
    body_chunks,
    read_body,
    refusal,
    send_error,
    with_readable_encodings,
    without_hop_by_hop,
)
from journeyman.hosts.proxy.recorder import AnsweredRequest, Recorder
from journeyman.hosts.proxy.requests import Injection, ModelRequest, form_of
from journeyman.hosts.proxy.sessions import (
    Conversation,
    Conversations,
    Marks,
    marks_of,
    named_session,
)
from journeyman.hosts.service import Exchange, HostService
from journeyman.records.errors import JourneymanError
from journeyman.templates.opening import MessageForm

log = logging.getLogger("journeyman.proxy")

DEFAULT_PORT = 6090
DEADLINE_S = 2.0
"""How long the first request of a session waits for its opening."""

_MARGIN_S = 0.2
_THREADS = 4
_NOT_FORWARDED = (b"host", b"expect")
_CREDENTIALS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")

Scope = MutableMapping[str, Any]


class ProxyOptions(Struct, frozen=True, kw_only=True):
    """What the proxy does. `folder` is where the agents work, if their requests do not say it."""

    upstream: str
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    opens: bool = True
    records: bool = True
    folder: str = ""
    deadline_s: float = DEADLINE_S
    learn_after_s: float = 60.0
    """How long no answer must have been recorded before Journeyman learns from them."""


class Proxy:
    """The proxy as an ASGI application."""

    def __init__(
        self,
        forwarder: Forwarder,
        upstream: Upstream,
        recorder: Recorder | None,
        openings: "OpeningSource",
        options: ProxyOptions,
    ) -> None:
        self._forwarder = forwarder
        self._upstream = upstream
        self._recorder = recorder
        self._openings = openings
        self._options = options
        self._folder = os.path.abspath(os.curdir)  # noqa: PTH100 - also of a folder that is gone
        load = recorder.load if recorder is not None else None
        self._conversations = Conversations(upstream.url, load)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        form = form_of(scope["method"], scope["path"])
        if reason := refusal(headers):
            await send_error(send, 403, f"Journeyman's proxy refuses this: {reason}", form)
            return
        if headers.get("upgrade", "").lower() == "websocket":
            # Agents then use plain HTTP.
            await send_error(send, 426, "Journeyman's proxy forwards no WebSockets.", form)
            return
        try:
            if form is None:
                await self._pass_through(scope, receive, send)
            else:
                await self._answer(form, headers, scope, receive, send)
        except Disconnected:
            log.debug("A client has gone before its request was complete.")

    async def _pass_through(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request that is none of a model API, as it comes."""
        headers = without_hop_by_hop(scope["headers"], *_NOT_FORWARDED)
        names = {name for name, _ in scope["headers"]}
        has_body = not names.isdisjoint((b"content-length", b"transfer-encoding"))
        body_read = asyncio.Event()
        content = body_chunks(receive, body_read) if has_body else None
        if not has_body:
            body_read.set()
        request = self._request(scope, headers, content)
        await self._forwarder.relay(request, receive, send, body_read=body_read)

    async def _answer(
        self,
        form: MessageForm,
        headers: dict[str, str],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Forward a request for a model's answer, with the opening of its session."""
        asked_at = time.time()
        body = await read_body(receive)
        forwarded = without_hop_by_hop(scope["headers"], *_NOT_FORWARDED, b"content-length")
        plain = decompressed(body, headers.get("content-encoding", ""))
        asked = ModelRequest.read(form, plain) if plain is not None else None
        if asked is None or not asked.takes_opening:
            request = self._request(scope, forwarded, body)
            await self._forwarder.relay(request, receive, send, form=form)
            return
        named = named_session(headers)
        if named is not None:
            conversation = self._conversations.named(named)
        else:
            conversation = await self._conversations.find(asked, _credential(headers))
            forwarded = with_readable_encodings(forwarded, READABLE_ENCODINGS)
        relayed = Relayed(copy=[] if named is None else None)
        read = partial(_marks_so_far, form, relayed)
        conversation.unread_answers.append(read)
        try:
            is_subagent = named is not None and named.is_subagent
            injection = await self._injection(conversation, asked, is_subagent=is_subagent)
            if injection is not None:
                body = asked.with_opening(injection)
                forwarded = [pair for pair in forwarded if pair[0] != b"content-encoding"]
            request = self._request(scope, forwarded, body)
            await self._forwarder.relay(request, receive, send, form=form, relayed=relayed)
            if not relayed.copy or not 200 <= relayed.status < 300:
                return
            answered_at = relayed.ended_at or time.time()
            answer = await _answer_read(conversation, asked, relayed)
        finally:
            conversation.unread_answers.remove(read)
        if self._recorder is not None:
            answered = AnsweredRequest(
                conversation=conversation,
                request=asked,
                answer=answer,
                opening=injection.id if injection is not None else "",
                asked_at=asked_at,
                answered_at=answered_at,
            )
            self._recorder.add(answered)

    async def _injection(
        self, conversation: Conversation, asked: ModelRequest, *, is_subagent: bool
    ) -> Injection | None:
        """Return what to insert into a request; None if nothing, or if a hook has done so."""
        if is_subagent and not self._openings.subagents:
            return None
        if not conversation.folder:
            conversation.folder = self._options.folder or asked.folder or self._folder
        injection = await self._openings.injection(conversation, asked)
        return None if injection is None or asked.contains(injection) else injection

    def _request(self, scope: Scope, headers: Headers, content: Any) -> httpx2.Request:
        path, query = scope["raw_path"], scope["query_string"]
        return self._upstream.request(scope["method"], path, query, headers, content)


class OpeningSource:
    """Decides on the opening of each session, once, in a thread and within a deadline. Subagents
    get one only if `subagents` is true.
    """

    def __init__(self, service: HostService, options: ProxyOptions, *, subagents: bool) -> None:
        self._service = service
        self._options = options
        self.subagents = subagents
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="proxy-opening")

    def warm_up(self) -> None:
        """Load what openings need, in the background."""
        if self._options.opens:
            self._threads.submit(self._warm_up)

    def _warm_up(self) -> None:
        try:
            self._service.openings.warm_up()
        except JourneymanError as error:
            log.warning("%s", error)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def injection(self, conversation: Conversation, asked: ModelRequest) -> Injection | None:
        """Return the opening of a session: for every request of it the same."""
        if not self._options.opens:
            return None
        if conversation.opening is None:
            conversation.opening = asyncio.create_task(self._decide(conversation, asked))
        return await asyncio.shield(conversation.opening)

    async def _decide(self, conversation: Conversation, asked: ModelRequest) -> Injection | None:
        deadline_s = self._options.deadline_s
        request = OpeningRequest(
            session=conversation.id,
            task=asked.task,
            cwd=conversation.folder,
            tools=asked.tools,
            model=asked.model,
            form=asked.form,
            fresh=asked.is_fresh,
        )
        exchange = Exchange(host=conversation.host, ends=time.monotonic() + deadline_s)
        name = f"{conversation.host} session {conversation.id[:12]}"
        try:
            work = self._threads.submit(self._service.opening, request, exchange)
            answer = await asyncio.wait_for(asyncio.wrap_future(work), deadline_s + _MARGIN_S)
        except TimeoutError:
            work.add_done_callback(lambda _: exchange.finish(is_received=False))
            log.warning("%s starts cold: its opening was not ready in %g s.", name, deadline_s)
            return None
        except Exception as error:  # noqa: BLE001 - a session never fails for want of an opening
            log.warning("%s starts cold: %s: %s", name, type(error).__name__, error)
            return None
        self._threads.submit(exchange.finish, is_received=True)
        if answer.state != "warm":
            log.info("%s is cold: %s", name, answer.reason or "nothing fits")
            return None
        log.info("%s is warm: opening %s, about %d tokens.", name, answer.id, answer.tokens)
        return Injection.of(answer.id, answer.system, answer.messages)


async def _answer_read(conversation: Conversation, asked: ModelRequest, relayed: Relayed) -> Answer:
    """Read the copy of an answer, in a thread because it may be long, and note it in the session's
    history.
    """
    conversation.is_answered = conversation.is_answered or relayed.is_complete
    answer = await asyncio.to_thread(_read_copy, asked.form, relayed)
    marks = [mark for message in asked.messages for mark in marks_of(message)]
    conversation.history.extend(marks, marks_of(answer.message or {}))
    return answer


def _marks_so_far(form: MessageForm, relayed: Relayed) -> Marks:
    """Return the marks of an answer that is being passed on, if it is complete."""
    return marks_of(_read_copy(form, relayed).message or {})


def _read_copy(form: MessageForm, relayed: Relayed) -> Answer:
    body = decompressed(b"".join(relayed.copy or ()), relayed.encoding)
    return Answer() if body is None else read_answer(form, body, is_stream=relayed.is_stream)


def _credential(headers: dict[str, str]) -> str:
    return "\n".join(headers.get(name, "") for name in _CREDENTIALS)
