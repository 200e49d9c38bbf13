"""Clients of the confirmation service, for agents that request and redeem and, with an approver's
key, for people who decide. `ConfirmClient` blocks, `AsyncConfirmClient` is for programs with an
event loop; both have the same methods.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2

from journeyman.confirm.client_operations import PATIENCE_S, Operations, ResponseBody, Unreachable

_CONNECTION_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, OSError)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class AsyncConfirmClient(Operations):
    """`ConfirmClient` with `await`. Use it as an asynchronous context manager, or `close` it."""

    def __init__(self, url: str, token: str = "", *, patience_s: float = PATIENCE_S) -> None:
        super().__init__(url, token, patience_s=patience_s)
        self._http = httpx2.AsyncClient(**self._options)

    async def _exchange(self, body: ResponseBody, request: dict[str, Any]) -> int:
        try:
            async with self._http.stream(**request) as response:
                async for chunk in response.aiter_bytes():
                    body.add(chunk)
        except _CONNECTION_ERRORS as error:
            raise _unreachable(error) from error
        return response.status_code

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


class _BlockingOperations(Operations):
    """The operations over a blocking connection: they never suspend, so one step runs them."""

    def __init__(self, url: str, token: str, *, patience_s: float) -> None:
        super().__init__(url, token, patience_s=patience_s)
        self.http = httpx2.Client(**self._options)

    async def _exchange(self, body: ResponseBody, request: dict[str, Any]) -> int:
        try:
            with self.http.stream(**request) as response:
                for chunk in response.iter_bytes():
                    body.add(chunk)
        except _CONNECTION_ERRORS as error:
            raise _unreachable(error) from error
        return response.status_code

    async def _pause(self, seconds: float) -> None:
        time.sleep(seconds)


def _unreachable(error: Exception) -> Unreachable:
    return Unreachable(str(error) or type(error).__name__)


def _blocking(
    operation: Callable[Concatenate[Operations, Arguments], Coroutine[Any, Any, Result]],
) -> "Callable[Concatenate[ConfirmClient, Arguments], Result]":
    """Turn an asynchronous operation into a method that returns its result directly."""

    @wraps(operation)
    def method(
        client: "ConfirmClient", /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        try:
            operation(client.operations, *args, **kwargs).send(None)
        except StopIteration as end:
            result: Result = end.value
            return result
        raise AssertionError("a blocking operation was suspended")

    return method


class ConfirmClient:
    """Connects to the confirmation service at `url`, as the holder of the token or key.

    The usual call is `ask`: its answer is true only if a person, or a whitelist entry added by a
    person, approved exactly these details. Use it as a context manager, or `close` it.
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
