"""The client of the confirmation service: for agents, who ask and redeem, and with an approver's
key for people, who decide. `ConfirmClient` is for plain programs, `AsyncConfirmClient` for those
with an event loop; both have the same methods.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2

from journeyman.confirm.operations import PATIENCE_S, Content, Operations, Unreached

_UNREACHED = (httpx2.HTTPError, httpx2.InvalidURL, OSError)

Given = ParamSpec("Given")
Result = TypeVar("Result")


class AsyncConfirmClient(Operations):
    """`ConfirmClient` with `await`. Use it as an asynchronous context manager, or `close` it."""

    def __init__(self, url: str, token: str = "", *, patience_s: float = PATIENCE_S) -> None:
        super().__init__(url, token, patience_s=patience_s)
        self._http = httpx2.AsyncClient(**self._options)

    async def _exchange(self, content: Content, request: dict[str, Any]) -> int:
        try:
            async with self._http.stream(**request) as answer:
                async for piece in answer.aiter_bytes():
                    content.add(piece)
        except _UNREACHED as problem:
            raise _unreached(problem) from problem
        return answer.status_code

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


class _BlockingOperations(Operations):
    """The operations with an exchange that never suspends: one step takes them to their end."""

    def __init__(self, url: str, token: str, *, patience_s: float) -> None:
        super().__init__(url, token, patience_s=patience_s)
        self.http = httpx2.Client(**self._options)

    async def _exchange(self, content: Content, request: dict[str, Any]) -> int:
        try:
            with self.http.stream(**request) as answer:
                for piece in answer.iter_bytes():
                    content.add(piece)
        except _UNREACHED as problem:
            raise _unreached(problem) from problem
        return answer.status_code

    async def _pause(self, seconds: float) -> None:
        time.sleep(seconds)


def _unreached(problem: Exception) -> Unreached:
    return Unreached(str(problem) or type(problem).__name__)


def _blocking(
    operation: Callable[Concatenate[Operations, Given], Coroutine[Any, Any, Result]],
) -> "Callable[Concatenate[ConfirmClient, Given], Result]":
    """An operation that returns its result, where nothing needs to be awaited."""

    @wraps(operation)
    def method(client: "ConfirmClient", /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            operation(client.operations, *args, **kwargs).send(None)
        except StopIteration as end:
            result: Result = end.value
            return result
        raise AssertionError("an operation that blocks was suspended")

    return method


class ConfirmClient:
    """Asks the confirmation service at `url`, as whoever the token or key belongs to.

    The everyday call is `ask`: it is true only when a person, or an entry that a person made,
    approved exactly these details. Use it as a context manager, or `close` it.
    """

    def __init__(self, url: str, token: str = "", *, patience_s: float = PATIENCE_S) -> None:
        self.operations = _BlockingOperations(url, token, patience_s=patience_s)

    ask = _blocking(Operations.ask)
    request = _blocking(Operations.request)
    wait = _blocking(Operations.wait)
    redeem = _blocking(Operations.redeem)
    get = _blocking(Operations.get)
    list = _blocking(Operations.list)
    cancel = _blocking(Operations.cancel)

    approve = _blocking(Operations.approve)
    deny = _blocking(Operations.deny)
    whitelist = _blocking(Operations.whitelist)
    add_to_whitelist = _blocking(Operations.add_to_whitelist)
    revoke = _blocking(Operations.revoke)
    audit = _blocking(Operations.audit)
    verify_audit = _blocking(Operations.verify_audit)
    health = _blocking(Operations.health)

    def close(self) -> None:
        self.operations.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
