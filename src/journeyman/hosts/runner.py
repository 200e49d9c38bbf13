"""What does the work of a run, a job or a review: a host's own agent or the small loop of this
package. Both take a `RunRequest`, report steps as they happen, and return a `RunResult`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from journeyman.records import Call, Tokens

Access = Literal["read", "edit", "all"]
"""What a run may do without a person: only read; change files in its folder and run commands, as
far as the gate has no question; or whatever the host can do unasked. The gate asks in each."""

RunStatus = Literal[
    "done",
    "turns",
    "tokens",
    "cost",
    "time",
    "interrupted",
    "repeating",
    "context_full",
    "model_failed",
    "cut",
    "empty",
    "failed",
    "not_logged_in",
    "rate_limited",
    "not_installed",
]
"""Why a run ended: the agent was done, a limit was reached, it was stopped, it kept repeating the
same calls with the same results, the context window was full, the model was unavailable, the last
reply was cut off, or was empty; the host's program failed, has no login, was told to wait by its
provider, or is not there."""


class RunLimits(Struct, frozen=True, kw_only=True):
    """Limits of a run; None means none of ours. `turns` counts requests to the model."""

    seconds: float | None = None
    turns: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None


class RunRequest(Struct, frozen=True, kw_only=True):
    """A run: what to do, in which folder. `opening` is what it starts with, if nothing else tells
    it. At most one of `resume` and `fork` names a session of the same runner: the run goes on with
    it, or with a copy of it, which leaves it as it is. `tools` False denies every call: the run may
    only answer.
    """

    prompt: str
    folder: Path
    opening: str = ""
    access: Access = "edit"
    limits: RunLimits = RunLimits()
    resume: str = ""
    fork: str = ""
    model: str = ""
    tools: bool = True


class RunOpening(Struct, frozen=True, kw_only=True):
    """What a run starts with: `summary` in a line, and a line or two about each example. Without an
    id it starts cold, and `note` says why.
    """

    id: str = ""
    summary: str = ""
    examples: tuple[str, ...] = ()
    note: str = ""


class RunBegan(Struct, frozen=True, kw_only=True):
    """The session of a run is known. `opening` is None if it goes on with an earlier session."""

    session: str
    model: str = ""
    opening: RunOpening | None = None


class RunText(Struct, frozen=True, kw_only=True):
    """The agent wrote something. The last text of a run is its answer."""

    text: str


class RunCall(Struct, frozen=True, kw_only=True):
    """A call ended, or was denied."""

    call: Call
    denied: bool = False


RunStep = RunBegan | RunText | RunCall


class DeniedCall(Struct, frozen=True, kw_only=True):
    """A call that was not made, because a person, a rule or the host did not permit it."""

    tool: str
    reason: str = ""


class RunResult(Struct, frozen=True, kw_only=True):
    """How a run ended. `tokens` and the cost are those that the runner reported, None if it did
    not. `reason` is the runner's own explanation, unless it was done; `turns` counts requests to
    the model; `changed_files` means that undo has work to do.
    """

    runner: str
    status: RunStatus
    text: str = ""
    session: str = ""
    model: str = ""
    tokens: Tokens = Tokens()
    turns: int = 0
    calls: int = 0
    denied: tuple[DeniedCall, ...] = ()
    reason: str = ""
    changed_files: bool = False
    seconds: float = 0.0

    @property
    def is_done(self) -> bool:
        return self.status == "done"


class Runner(Protocol):
    """Does the work of a run. It returns a result also if it was stopped or failed."""

    name: str

    def run(
        self,
        request: RunRequest,
        *,
        on_step: Callable[[RunStep], None] = ...,
        cancelled: Callable[[], bool] = ...,
    ) -> RunResult:
        """Do a run to its end; stop soon after `cancelled` returns true."""


class HostRunners(Protocol):
    """Chooses and makes the runners of hosts, for the rooms below the one that answers their
    hooks.
    """

    def choose(self, folder: Path) -> str:
        """Return the name of the runner for a folder. Raise BadSetting if there is none."""

    def make(
        self,
        name: str,
        *,
        owner: str,
        warm: bool,
        holds: bool,
        notify: Callable[[str], None],
    ) -> Runner:
        """Make a runner with nobody there: risky calls are held for the confirmation service if it
        `holds`, and refused otherwise. `owner` is whom its session belongs to.
        """
