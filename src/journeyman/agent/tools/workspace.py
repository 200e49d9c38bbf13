"""The folder that an agent works in. Paths are resolved only inside it, and commands run in it,
confined to it where the machine supports that.
"""

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from journeyman.agent.tools import confinement
from journeyman.agent.tools.process import ProcessResult, run_process
from journeyman.agent.tools.tool import Invocation, Resources, Result, ToolError, failed, refused
from journeyman.gate.decision import Network
from journeyman.records.errors import BadSetting


class OutOfReach(Exception):
    """A path leads out of the workspace. The message is for the model."""


class BadPath(ToolError):
    """A path cannot be used as requested. The message says why, and what to do instead."""


class Workspace:
    """The folder of an agent, with a private temporary folder that `close` removes.

    `unconfined` says why commands are not confined to the folder, and is empty where they are.
    Unconfined commands run with the user's rights; the file tools never leave the folder.
    `network` says whether confined commands have network access, `resources` what each may use.

    No command may read the paths in `hidden`: a workspace that would expose one raises BadSetting.
    """

    def __init__(
        self,
        root: Path,
        *,
        confine: bool = True,
        environment: Mapping[str, str] | None = None,
        hidden: Sequence[Path] = (),
        network: Network = "ask",
        resources: Resources = Resources(),  # noqa: B008 - it is frozen
    ) -> None:
        self.root = root.expanduser().resolve()
        if not self.root.is_dir():
            raise BadSetting(
                f"The workspace {root} is not a folder. Create it, or choose another one."
            )
        bubblewrap, self.unconfined = "", "agent.confine is false"
        if confine:
            bubblewrap, self.unconfined = confinement.find_confinement()
        self.network: Network = network
        self.resources = resources
        self.private = Path(tempfile.mkdtemp(prefix="journeyman-")).resolve()
        self._remove_private = weakref.finalize(
            self, shutil.rmtree, self.private, ignore_errors=True
        )
        for name in ("home", "tmp"):
            (self.private / name).mkdir()
        inherited = os.environ if environment is None else environment
        home = Path.home().resolve()
        self.environment = confinement.command_environment(inherited, home, self.private)
        self.policy = confinement.policy_for(
            self.root, self.environment, home, self.private, bubblewrap
        )
        for place in hidden:
            if folder := self.policy.exposing_folder(place):
                self.close()
                raise BadSetting(
                    f"The agent's commands would be able to read {place}, which must stay hidden "
                    f"from them: it is in {folder}, which they can read. Choose another workspace, "
                    "remove that folder from PATH, or move one of the two."
                )

    def close(self) -> None:
        """Remove the temporary folder."""
        self._remove_private()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def find_path(self, path: str) -> Path:
        """Resolve a path, following links; nothing needs to exist there. Raises OutOfReach and
        BadPath.
        """
        try:
            place = (self.root / Path(path).expanduser()).resolve()
            place.exists()  # some invalid paths only fail when they are used
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BadPath(f"Invalid path: {path[:200]!r} cannot be used ({reason}).") from error
        if not place.is_relative_to(self.root):
            raise OutOfReach(
                f"The path {path[:200]!r} is outside the workspace "
                f"{showable(str(self.root))}. Give a path relative to the workspace."
            )
        return place

    def shown(self, place: Path) -> str:
        """Return a path inside the workspace as it is shown to the model."""
        return showable(place.relative_to(self.root).as_posix())

    def run(
        self,
        command: Sequence[str],
        *,
        timeout_s: float,
        characters: int,
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
        network: bool = False,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ProcessResult:
        """Run a program in the workspace. `network` grants it the network for this run if the
        workspace asks for approval. Raises OSError if the program cannot be started.
        """
        network = self.network == "on" or (network and self.network == "ask")
        offline = {} if network or self.unconfined else confinement.OFFLINE
        return run_process(
            command,
            folder=folder or self.root,
            environment={**self.environment, **offline, **(variables or {})},
            policy=None if self.unconfined else self.policy,
            timeout_s=timeout_s,
            characters=characters,
            network=network,
            resources=self.resources,
            cancelled=cancelled,
        )


def bound(
    workspace: Workspace | None,
    run: Callable[[Workspace, Invocation], Result],
    failure: Mapping[str, Any],
) -> Callable[[Invocation], Result]:
    """Return the function of a tool that works in a workspace. A ToolError, a path out of reach or
    an OSError becomes a result with the content `failure`. Without a workspace, every call fails.
    """

    def answer(call: Invocation) -> Result:
        if workspace is None:
            return failed("This tool is only a description: it has no workspace.", **failure)
        try:
            return run(workspace, call)
        except OutOfReach as error:
            return refused(str(error), **failure)
        except ToolError as error:
            return failed(str(error), **{**failure, **error.content})
        except OSError as error:
            return failed(f"The operation failed: {error.strerror}.", **failure)

    return answer


def showable(text: str) -> str:
    """Replace bytes that are not valid UTF-8, so that a text or path can be shown."""
    return text.encode(errors="surrogateescape").decode(errors="replace")
