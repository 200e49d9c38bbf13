"""The client of the confirmation service for programs with an event loop: `client` with `await`.
What both say and understand is in `calls`, `asking` and `wire`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2

from journeyman.confirm import asking, calls
from journeyman.confirm.client import PATIENCE_S
from journeyman.confirm.wire import Body, Call, opened_with, read_answer, sent_with, unreachable
from journeyman.records.errors import JourneymanError

Given = ParamSpec("Given")
Result = TypeVar("Result")


def _one(
    make: Callable[Given, Call[Result]],
) -> "Callable[Concatenate[AsyncConfirmClient, Given], Awaitable[Result]]":
    """A method that makes one request."""

    async def method(
        client: "AsyncConfirmClient", /, *args: Given.args, **kwargs: Given.kwargs
    ) -> Result:
        return await client.send(make(*args, **kwargs))

    method.__name__, method.__doc__ = make.__name__, make.__doc__
    return method


def _several(
    talk: Callable[Given, asking.Steps[Result]],
) -> "Callable[Concatenate[AsyncConfirmClient, Given], Awaitable[Result]]":
    """A method that makes requests until it has its result."""

    async def method(
        client: "AsyncConfirmClient", /, *args: Given.args, **kwargs: Given.kwargs
    ) -> Result:
        return await client.talk(talk(*args, **kwargs))

    method.__name__, method.__doc__ = talk.__name__, talk.__doc__
    return method


class AsyncConfirmClient:
    """Asks the confirmation service at `url`, as whoever the token or key belongs to.

    It has the methods of `ConfirmClient`, to be awaited. Use it as an asynchronous context manager,
    or `close` it.
    """

    def __init__(self, url: str, token: str = "", *, patience_s: float = PATIENCE_S) -> None:
        self.url = url.rstrip("/")
        self._patience_s = patience_s
        self._http = httpx2.AsyncClient(**opened_with(self.url, token, patience_s))

    ask = _several(asking.asking)
    request = _one(calls.request)
    wait = _several(asking.waiting)
    redeem = _several(asking.redeeming)
    get = _one(calls.get)
    list = _one(calls.list_)
    cancel = _one(calls.cancel)

    approve = _one(calls.approve)
    deny = _one(calls.deny)
    whitelist = _one(calls.whitelist)
    add_to_whitelist = _one(calls.add_to_whitelist)
    revoke = _one(calls.revoke)
    audit = _one(calls.audit)
    verify_audit = _one(calls.verify_audit)
    health = _one(calls.health)

    async def send(self, call: Call[Result]) -> Result:
        """Make one request. Raises ConfirmationRefused and ServiceUnavailable."""
        body = Body(call, self.url, self._patience_s)
        try:
            async with self._http.stream(**sent_with(call, self._patience_s)) as answer:
                async for piece in answer.aiter_bytes():
                    body.add(piece)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as problem:
            raise unreachable(call, self.url, problem) from problem
        return read_answer(call, self.url, answer.status_code, bytes(body))

    async def talk(self, steps: asking.Steps[Result]) -> Result:
        """Take the steps of a talk until it has its result."""
        try:
            step = next(steps)
            while True:
                try:
                    came = await self._taken(step)
                except JourneymanError as problem:
                    step = steps.throw(problem)
                else:
                    step = steps.send(came)
        except StopIteration as end:
            result: Result = end.value
            return result

    async def _taken(self, step: Call[Any] | asking.Pause) -> object:
        if isinstance(step, asking.Pause):
            await asyncio.sleep(step.seconds)
            return None
        return await self.send(step)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()
