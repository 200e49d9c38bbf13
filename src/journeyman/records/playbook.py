"""Playbooks: what is known about working in one project. Everything is counted over sessions, from
verified calls, and redacted.
"""

from msgspec import Struct


class PlaybookCommand(Struct, frozen=True, kw_only=True):
    """A command that works in the project. `form` is its most common form, `piped` the most common
    way of truncating or filtering its output.
    """

    name: str
    form: str
    piped: str = ""
    sessions: int = 0
    worked: int = 0
    failed: int = 0
    last_at: float | None = None
    purpose: str = ""

    @property
    def reliability(self) -> float:
        """The share of its calls that worked."""
        return self.worked / max(self.worked + self.failed, 1)


class PlaybookMistake(Struct, frozen=True, kw_only=True):
    """A recurring mistake: the tool (`shell` for commands of any agent), its error text, and the
    command if it mostly was one. `remedy` names the calls that most often fixed it, ending with the
    repeated call; `mended` counts how often any remedy did.
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
    """A file that is read or changed repeatedly."""

    path: str
    sessions: int = 0
    read: int = 0
    changed: int = 0
    last_at: float | None = None


class Playbook(Struct, frozen=True, kw_only=True):
    """A project's playbook, most common first. `sessions` counts the sessions it is based on,
    `bots` those of bots that were left out.
    """

    project: str
    sessions: int = 0
    bots: int = 0
    episodes: int = 0
    commands: tuple[PlaybookCommand, ...] = ()
    mistakes: tuple[PlaybookMistake, ...] = ()
    files: tuple[PlaybookFile, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.commands or self.mistakes or self.files)
