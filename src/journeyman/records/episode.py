"""Episodes: one request of a person and the calls that served it, the unit of experience.

Everything in an episode is redacted before the record is created.
"""

from typing import Literal

from msgspec import Struct

from journeyman.records.pattern import Step
from journeyman.records.session import SessionId

Ending = Literal["well", "failed", "rejected", "interrupted", "unknown"]
"""How an episode ended. `well`: its last action worked and the person did not object, or the
session's recorded outcome is a success. `failed`: its last action did not work, or the recorded
outcome is not a success. `rejected`: the person's next message undoes or corrects it.
`interrupted`: the person stopped it. `unknown`: no call is conclusive."""


class CommandUse(Struct, frozen=True, array_like=True, gc=False):
    """A shell command of an episode: its program with the subcommand, the form in which it was
    written, how often it worked and failed, how long it took at most, and the folder it ran in.
    """

    name: str
    form: str
    worked: int = 0
    failed: int = 0
    seconds: float = 0.0
    folder: str = ""


class FileUse(Struct, frozen=True, array_like=True, gc=False):
    """A file that was successfully read or changed, by its path inside the project."""

    path: str
    read: int = 0
    changed: int = 0


TrapReason = Literal["path", "program", "check", "task", "option", "arguments"]
"""Why a call failed: its path does not exist, its program is not installed, or cannot load what it
checks, its program knows no such task or option, or its tool does not take such arguments."""


class Trap(Struct, frozen=True, array_like=True, gc=False):
    """A call that failed for a reason which holds for the project, not for the moment. `failed` is
    the part of the call that did not exist, as it was written in the call; `works` is the same part
    of the call that then reached the same end, empty if none did.
    """

    reason: TrapReason
    tool: str
    failed: str
    works: str = ""


class Finding(Struct, frozen=True, array_like=True, gc=False):
    """A rule that a linter or type checker reported, or a test that failed."""

    command: str
    rule: str


class Check(Struct, frozen=True, array_like=True, gc=False):
    """The last test, lint or build of an episode, and whether it worked."""

    command: str
    worked: bool


class Remark(Struct, frozen=True, array_like=True, gc=False):
    """What a person said when refusing or correcting something, and the call in question: its tool,
    and its command or file.
    """

    words: str
    tool: str = ""
    target: str = ""


class Observations(Struct, frozen=True, array_like=True, gc=False):
    """What an episode shows about its project. It is `tainted` if it took in content of web pages
    or MCP servers, which may say anything.
    """

    commands: tuple[CommandUse, ...] = ()
    files: tuple[FileUse, ...] = ()
    traps: tuple[Trap, ...] = ()
    findings: tuple[Finding, ...] = ()
    check: Check | None = None
    remarks: tuple[Remark, ...] = ()
    tainted: bool = False


class Episode(Struct, frozen=True, kw_only=True):
    """One request and its result. `number` counts the requests of the session. `steps` are the
    decisive calls in order, all successful, if the episode `teaches`. The request is empty if the
    episode has text that instructs its reader.
    """

    session: SessionId
    number: int
    request: str
    ending: Ending
    at: float | None = None
    source: str = ""
    project: str = ""
    steps: tuple[Step, ...] = ()
    observed: Observations = Observations()

    @property
    def teaches(self) -> bool:
        """Whether the episode may be shown as an example."""
        return self.ending == "well" and bool(self.steps)


class MinedSession(Struct, frozen=True, kw_only=True):
    """What one session teaches, and the state of the session when it was mined: its digest, outcome
    and end reason. `reason` says why it teaches nothing, if it does not.
    """

    session: SessionId
    digest: str
    outcome: float | None = None
    end_reason: str = ""
    reason: str = ""
    episodes: tuple[Episode, ...] = ()


class SearchKeys(Struct, frozen=True, kw_only=True, gc=False):
    """The index of an episode, as the bytes of arrays: the words of its request and of its calls
    as four-byte unsigned integers, their vectors as two-byte floats.
    """

    words: bytes
    call_words: bytes
    vector: bytes
    call_vector: bytes
