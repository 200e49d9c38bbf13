"""The folder that an agent works in. Paths are resolved only inside it, files are read and written
there, and commands run in it, confined to it where the kernel supports that.

Functions here expect paths with links already resolved. A folder on the path that has been replaced
by a link since then is not entered.
"""

import io
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from journeyman.agent.tools import confinement
from journeyman.agent.tools.process import ProcessResult, run_process
from journeyman.agent.tools.tool import (
    Invocation,
    Resources,
    Result,
    ToolError,
    failed,
    refused,
)
from journeyman.gate.decision import Network
from journeyman.records.errors import BadSetting
from journeyman.text.atomic_write import entered, put_file

LARGEST_FILE = 50 * 2**20
"""In bytes. Larger files are not for a model to read."""


class OutOfReach(Exception):
    """A path leads out of the workspace. The message is for the model."""


class BadPath(ToolError):
    """A path cannot be used as requested. The message says why, and what to do instead."""


class Workspace:
    """The folder of an agent, with a private temporary folder that `close` removes.

    `unconfined` says why the kernel does not confine commands to the folder, and is empty where it
    does. Unconfined commands run with the user's rights; the file tools never leave the folder.
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
            if is_inside := place == self.root or self.root in place.parents:
                place.exists()  # some invalid paths only fail when they are used
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BadPath(f"Invalid path: {path[:200]!r} cannot be used ({reason}).") from error
        if not is_inside:
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


def answering(
    run: Callable[[Invocation], Result], **content: Any
) -> Callable[[Invocation], Result]:
    """Wrap a tool's function so that a ToolError, a path out of reach or an OSError becomes a
    result with this content.
    """

    def answer(call: Invocation) -> Result:
        try:
            return run(call)
        except OutOfReach as error:
            return refused(str(error), **content)
        except ToolError as error:
            return failed(str(error), **{**content, **error.content})
        except OSError as error:
            return failed(f"The operation failed: {error.strerror}.", **content)

    return answer


def read_bytes(place: Path, name: str) -> bytes:
    """Return the contents of a file. Raises BadPath and FileNotFoundError."""
    problem, file = "", place.name or "."
    try:
        with entered(place.parent) as folder:
            status = os.stat(file, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                problem = "is a folder, not a file. List it with search_files, target 'files'"
            elif not stat.S_ISREG(status.st_mode):
                problem = "is not a plain file"
            elif status.st_size > LARGEST_FILE:
                problem = f"is too large to read ({status.st_size:,} bytes). Look at a part of it "
                problem += "with terminal: head, tail, sed or grep"
            else:
                # Do not follow a link that was just put there, or wait for a pipe.
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(os.open(file, flags, dir_fd=folder), "rb") as opened:
                    return opened.read()
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(name) from None
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    raise BadPath(f"{name!r} {problem}.")


def showable(text: str) -> str:
    """Replace bytes that are not valid UTF-8, so that a text or path can be shown."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def replace_file(place: Path, data: bytes) -> None:
    """Write a file atomically: readers see either the old or the new content. An existing file
    keeps its mode, and missing folders are created. Raises OSError.
    """
    with entered(place.parent, create=True) as folder:
        mode = None
        with suppress(FileNotFoundError):
            status = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode) if stat.S_ISREG(status.st_mode) else None
        put_file(folder, place.name, io.BytesIO(data), mode=mode, sync=True)
