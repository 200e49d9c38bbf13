"""The client of the confirmation service: for agents, who ask and redeem, and with an approver's
key for people, who decide. `async_client` has the same with `await`; what both say and understand
is in `calls`, `asking` and `wire`.
"""

import time
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2

from journeyman.confirm import asking, calls
from journeyman.confirm.wire import Body, Call, opened_with, read_answer, sent_with, unreachable
from journeyman.records.errors import JourneymanError

PATIENCE_S = 10.0
"""How long the service may be silent."""

Given = ParamSpec("Given")
Result = TypeVar("Result")


def _one(
    make: Callable[Given, Call[Result]],
) -> "Callable[Concatenate[ConfirmClient, Given], Result]":
    """A method that makes one request."""

    def method(client: "ConfirmClient", /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        return client.send(make(*args, **kwargs))

    method.__name__, method.__doc__ = make.__name__, make.__doc__
    return method


def _several(
    talk: Callable[Given, asking.Steps[Result]],
) -> "Callable[Concatenate[ConfirmClient, Given], Result]":
    """A method that makes requests until it has its result."""

    def method(client: "ConfirmClient", /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        return client.talk(talk(*args, **kwargs))

    method.__name__, method.__doc__ = talk.__name__, talk.__doc__
    return method


class ConfirmClient:
    """Asks the confirmation service at `url`, as whoever the token or key belongs to.

    The everyday call is `ask`: it is true only when a person, or an entry that a person made,
    approved exactly these details. Use it as a context manager, or `close` it.
    """

    def __init__(self, url: str, token: str = "", *, patience_s: float = PATIENCE_S) -> None:
        self.url = url.rstrip("/")
        self._patience_s = patience_s
        self._http = httpx2.Client(**opened_with(self.url, token, patience_s))

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

    def send(self, call: Call[Result]) -> Result:
        """Make one request. Raises ConfirmationRefused and ServiceUnavailable."""
        body = Body(call, self.url, self._patience_s)
        try:
            with self._http.stream(**sent_with(call, self._patience_s)) as answer:
                for piece in answer.iter_bytes():
                    body.add(piece)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as problem:
            raise unreachable(call, self.url, problem) from problem
        return read_answer(call, self.url, answer.status_code, bytes(body))

    def talk(self, steps: asking.Steps[Result]) -> Result:
        """Take the steps of a talk until it has its result."""
        try:
            step = next(steps)
            while True:
                try:
                    came = self._taken(step)
                except JourneymanError as problem:
                    step = steps.throw(problem)
                else:
                    step = steps.send(came)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _taken(self, step: Call[Any] | asking.Pause) -> object:
        if isinstance(step, asking.Pause):
            time.sleep(step.seconds)
            return None
        return self.send(step)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
