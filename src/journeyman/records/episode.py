"""Episodes: one request of a person and the calls that served it, the unit of experience.

Everything in an episode has been redacted before the record is made.
"""

from typing import Literal

from msgspec import Struct

from journeyman.records.kept_out import KeptOut
from journeyman.records.pattern import Pattern, Step
from journeyman.records.session import SessionId

Ending = Literal["well", "failed", "rejected", "interrupted", "unknown"]
"""How an episode ended. `well`: what it did last worked and nobody objected, or the session's
recorded outcome was a success. `failed`: what it did last did not work, or the recorded outcome was
no success. `rejected`: the person's next words undo or correct it. `interrupted`: the person
stopped it. `unknown`: no call says anything."""


class CommandUse(Struct, frozen=True, array_like=True, gc=False):
    """A shell command of an episode: its program with the subcommand, the form in which it was
    written, how often it worked and how often it failed, and what the agent said it was for.
    """

    name: str
    form: str
    worked: int = 0
    failed: int = 0
    purpose: str = ""


class FileUse(Struct, frozen=True, array_like=True, gc=False):
    """A file that was read or changed with success, by its path inside the project."""

    path: str
    read: int = 0
    changed: int = 0


class Mistake(Struct, frozen=True, array_like=True, gc=False):
    """A call that failed. `error` is the fingerprint of what it said, `target` the command's name
    where it was a command. `remedy` names what came between it and the same call when that worked,
    the call itself last; it is empty where nothing mended it.
    """

    tool: str
    error: str
    target: str = ""
    remedy: tuple[str, ...] = ()


class Episode(Struct, frozen=True, kw_only=True):
    """One request and what became of it. `steps` are the decisive calls in order, all of which
    worked; they are an example where the episode `teaches`. `number` counts the requests of the
    session.
    """

    session: SessionId
    number: int
    request: str
    ending: Ending
    at: float | None = None
    source: str = ""
    project: str = ""
    steps: tuple[Step, ...] = ()
    commands: tuple[CommandUse, ...] = ()
    files: tuple[FileUse, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    tokens: int = 0
    quarantined: str = ""

    @property
    def teaches(self) -> bool:
        """Whether it may be shown as an example."""
        return self.ending == "well" and bool(self.steps) and not self.quarantined


class MinedSession(Struct, frozen=True, kw_only=True):
    """What one session teaches, and what the session was then: its digest, outcome and end.
    `reason` says why it teaches nothing, where it may not. `released` are the keys in `kept_out`
    that a person had released: these teach all the same.
    """

    session: SessionId
    digest: str
    outcome: float | None = None
    end_reason: str = ""
    reason: str = ""
    episodes: tuple[Episode, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    kept_out: tuple[KeptOut, ...] = ()
    released: frozenset[str] = frozenset()


class SearchKeys(Struct, frozen=True, kw_only=True, gc=False):
    """What an episode is found by, as arrays' bytes: the words of its request and of its calls as
    unsigned numbers of four bytes, their vectors as floats of two.
    """

    words: bytes
    call_words: bytes
    vector: bytes
    call_vector: bytes
