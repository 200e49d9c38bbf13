"""Playbooks: what holds in one project. Everything is counted over sessions, from calls that were
verified, and has been redacted.
"""

from msgspec import Struct


class PlaybookCommand(Struct, frozen=True, kw_only=True):
    """A command that works here. `form` is how it is mostly written, `piped` how its output is
    mostly cut or filtered, where it is. `requests` are a few that it served.
    """

    name: str
    form: str
    piped: str = ""
    sessions: int = 0
    worked: int = 0
    failed: int = 0
    last_at: float | None = None
    purpose: str = ""
    requests: tuple[str, ...] = ()

    @property
    def reliability(self) -> float:
        """The share of its calls that worked."""
        return self.worked / max(self.worked + self.failed, 1)


class PlaybookMistake(Struct, frozen=True, kw_only=True):
    """A mistake that recurs: the tool (`shell` for commands of any agent), what it said, and the
    command where it was mostly one. `remedy`
    names the calls that mended it most often, the repeated call last; `mended` says how often any
    remedy did.
    """

    tool: str
    error: str
    target: str = ""
    sessions: int = 0
    times: int = 0
    mended: int = 0
    remedy: tuple[str, ...] = ()
    last_at: float | None = None


class PlaybookFile(Struct, frozen=True, kw_only=True):
    """A file that is read or changed again and again, and requests that it was for."""

    path: str
    sessions: int = 0
    read: int = 0
    changed: int = 0
    last_at: float | None = None
    requests: tuple[str, ...] = ()


class Playbook(Struct, frozen=True, kw_only=True):
    """What holds in a project, most common first. `sessions` counts those that it was made from."""

    project: str
    sessions: int = 0
    episodes: int = 0
    commands: tuple[PlaybookCommand, ...] = ()
    mistakes: tuple[PlaybookMistake, ...] = ()
    files: tuple[PlaybookFile, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.commands or self.mistakes or self.files)
