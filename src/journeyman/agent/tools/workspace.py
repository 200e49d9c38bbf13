"""The folder an agent works in: paths are looked up inside it and nowhere else, and commands run in
it, confined to it where the kernel can do that.
"""

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from journeyman.agent.tools import confinement
from journeyman.agent.tools.contents import showable
from journeyman.agent.tools.environment import command_environment
from journeyman.agent.tools.processes import Ended, run_process
from journeyman.agent.tools.tool import Invocation, Result, failed, refused
from journeyman.records.errors import BadSetting


class OutOfReach(Exception):
    """A path leads out of the workspace; the text says so to the model."""


class BadPath(Exception):
    """A path is none that the system takes; the text says so to the model."""


class Workspace:
    """One folder, with a temporary folder of its own beside it that is gone after `close`.

    `confined` says whether commands are held to it by the kernel. Without that they run with the
    rights of the user; paths given to the file tools are held to it in any case.

    Confined commands have no terminal, and on x86_64 and aarch64 no sockets with a path either, so
    that they cannot have a program outside do what they may not; 32-bit programs do not run there.
    On other machines such sockets (those of docker, tmux, ssh-agent) stay within their reach.

    `hidden` are places that no command may read: a workspace that would open one is refused.
    """

    def __init__(
        self,
        root: Path,
        *,
        confine: bool = True,
        environment: Mapping[str, str] | None = None,
        hidden: Sequence[Path] = (),
    ) -> None:
        self.root = root.expanduser().resolve()
        if not self.root.is_dir():
            raise BadSetting(
                f"The workspace {root} is not a folder. Create it, or give another one."
            )
        self.confined = confine and confinement.available()
        self.private = Path(tempfile.mkdtemp(prefix="journeyman-")).resolve()
        self._tidy = weakref.finalize(self, shutil.rmtree, self.private, ignore_errors=True)
        own_home, temporary = self.private / "home", self.private / "tmp"
        own_home.mkdir()
        temporary.mkdir()
        given = os.environ if environment is None else environment
        home = Path.home().resolve()
        self.environment = command_environment(
            given, home=home, own_home=own_home, temporary=temporary
        )
        self.policy = confinement.policy_for((self.root, self.private), self.environment, home)
        self._refuse_to_open(hidden)

    def _refuse_to_open(self, hidden: Sequence[Path]) -> None:
        for place in hidden:
            if folder := self.policy.opens(place):
                self.close()
                raise BadSetting(
                    f"The agent's commands would be able to read {place}, which is not for them: "
                    f"it is in {folder}, which is open to them. Have the agent work in another "
                    "folder, take that folder off PATH, or keep one of the two elsewhere."
                )

    def close(self) -> None:
        """Remove the temporary folder."""
        self._tidy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def find_path(self, given: str) -> Path:
        """The place that a path means, links followed, whether or not something is there. Raises
        OutOfReach, BadPath.
        """
        try:
            place = (self.root / Path(given).expanduser()).resolve()
            place.exists()  # some paths are found out only when they are used
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BadPath(f"Invalid path: {given[:200]!r} cannot be used ({reason}).") from error
        if place != self.root and self.root not in place.parents:
            raise OutOfReach(
                f"The path {given[:200]!r} is outside the workspace "
                f"{showable(str(self.root))}. Give a path relative to the workspace."
            )
        return place

    def shown(self, place: Path) -> str:
        """A place inside the workspace as the model is told it."""
        return showable(place.relative_to(self.root).as_posix())

    def run(
        self,
        command: Sequence[str],
        *,
        timeout_s: float,
        characters: int,
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Ended:
        """Run a program inside the workspace. Raises OSError when it cannot be started."""
        return run_process(
            command,
            folder=folder or self.root,
            environment={**self.environment, **(variables or {})},
            policy=self.policy if self.confined else None,
            timeout_s=timeout_s,
            characters=characters,
            cancelled=cancelled,
        )


def inside_only(
    run: Callable[[Invocation], Result], **content: Any
) -> Callable[[Invocation], Result]:
    """A tool's function with an answer, which has this content, where a path is out of reach."""

    def answer(call: Invocation) -> Result:
        try:
            return run(call)
        except OutOfReach as error:
            return refused(str(error), **content)
        except BadPath as error:
            return failed(str(error), **content)

    return answer
