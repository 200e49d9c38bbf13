"""Episodes: one request of a person and the calls that served it, the unit of experience.

Everything in an episode is redacted before the record is created.
"""

from typing import Literal

from msgspec import Struct

from journeyman.records.exclusions import KeptOut
from journeyman.records.pattern import Pattern, Step
from journeyman.records.session import SessionId

Ending = Literal["well", "failed", "rejected", "interrupted", "unknown"]
"""How an episode ended. `well`: its last action worked and the person did not object, or the
session's recorded outcome is a success. `failed`: its last action did not work, or the recorded
outcome is not a success. `rejected`: the person's next message undoes or corrects it.
`interrupted`: the person stopped it. `unknown`: no call is conclusive."""


class CommandUse(Struct, frozen=True, array_like=True, gc=False):
    """A shell command of an episode: its program with the subcommand, the form in which it was
    written, how often it worked and failed, and the purpose that the agent stated.
    """

    name: str
    form: str
    worked: int = 0
    failed: int = 0
    purpose: str = ""


class FileUse(Struct, frozen=True, array_like=True, gc=False):
    """A file that was successfully read or changed, by its path inside the project."""

    path: str
    read: int = 0
    changed: int = 0


class Mistake(Struct, frozen=True, array_like=True, gc=False):
    """A call that failed. `error` is the fingerprint of its error text, `target` the name of the
    command if it was one. `remedy` names the calls between the failure and the successful
    repetition of the same call, ending with that call; it is empty if nothing fixed the failure.
    """

    tool: str
    error: str
    target: str = ""
    remedy: tuple[str, ...] = ()


class Episode(Struct, frozen=True, kw_only=True):
    """One request and its result. `number` counts the requests of the session. `steps` are the
    decisive calls in order, all successful; they serve as an example if the episode `teaches`.
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
        """Whether the episode may be shown as an example."""
        return self.ending == "well" and bool(self.steps) and not self.quarantined


class MinedSession(Struct, frozen=True, kw_only=True):
    """What one session teaches, and the state of the session when it was mined: its digest, outcome
    and end reason. `reason` says why it teaches nothing, if it does not. `released` are the keys in
    `kept_out` that a person had released: these are learned nevertheless.
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
    """The index of an episode, as the bytes of arrays: the words of its request and of its calls
    as four-byte unsigned integers, their vectors as two-byte floats.
    """

    words: bytes
    call_words: bytes
    vector: bytes
    call_vector: bytes
