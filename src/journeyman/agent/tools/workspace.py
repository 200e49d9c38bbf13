"""The folder an agent works in: paths are looked up inside it and nowhere else, files are read and
written there, and commands run in it, confined to it where the kernel can do that.

Places are given with links followed; a folder on the way that has been swapped for a link since
then is not entered.
"""

import io
import os
import secrets
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, Self

from journeyman.agent.tools import confinement
from journeyman.agent.tools.processes import Ended, run_process
from journeyman.agent.tools.tool import Failed, Invocation, Resources, Result, failed, refused
from journeyman.records.errors import BadSetting

Network = Literal["off", "ask", "on"]
"""Whether commands have the network: never, when a person allows it for one of them, or always."""

LARGEST_FILE = 50 * 2**20
"""Larger files are for programs, not for a model to read."""

UNFINISHED = ".journeyman-part"
"""What the name of a file ends in that is still being written."""

_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class OutOfReach(Exception):
    """A path leads out of the workspace; the text says so to the model."""


class BadPath(Failed):
    """A path cannot be used as asked; the text says why to the model, and what to do instead."""


class Workspace:
    """One folder, with a temporary folder of its own beside it that is gone after `close`.

    `unconfined` says why the kernel does not hold commands to it; it is empty where it does.
    Without that they run with the rights of the user; paths given to the file tools are held to it
    in any case. `network` says whether confined commands have it; `resources` is what each may use.

    `hidden` are places that no command may read: a workspace that would open one is refused.
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
                f"The workspace {root} is not a folder. Create it, or give another one."
            )
        self.unconfined = confinement.why_unconfined() if confine else "agent.confine is false"
        self.network: Network = network
        self.resources = resources
        self.private = Path(tempfile.mkdtemp(prefix="journeyman-")).resolve()
        self._tidy = weakref.finalize(self, shutil.rmtree, self.private, ignore_errors=True)
        own_home, temporary = self.private / "home", self.private / "tmp"
        own_home.mkdir()
        temporary.mkdir()
        given = os.environ if environment is None else environment
        home = Path.home().resolve()
        self.environment = confinement.command_environment(
            given, home=home, own_home=own_home, temporary=temporary
        )
        self.policy = confinement.policy_for((self.root, self.private), self.environment, home)
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
        network: bool = False,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Ended:
        """Run a program inside the workspace, this once with the network if so given. Raises
        OSError when it cannot be started.
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
    """A tool's function with an answer, which has this content, where it fails, a path is out of
    reach or the system refuses.
    """

    def answer(call: Invocation) -> Result:
        try:
            return run(call)
        except OutOfReach as error:
            return refused(str(error), **content)
        except Failed as error:
            return failed(str(error), **{**content, **error.content})
        except OSError as error:
            return failed(f"It could not be done: {error.strerror}.", **content)

    return answer


@contextmanager
def entered(folder: Path, *, create: bool = False) -> Iterator[int]:
    """A folder, opened step by step from the root without following a link. Raises OSError."""
    opened = os.open(folder.anchor, _ENTER)
    try:
        for name in folder.parts[1:]:
            try:
                inner = os.open(name, _ENTER, dir_fd=opened)
            except FileNotFoundError:
                if not create:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=opened)
                inner = os.open(name, _ENTER, dir_fd=opened)
            os.close(opened)
            opened = inner
        yield opened
    finally:
        os.close(opened)


def read_bytes(place: Path, name: str) -> bytes:
    """What a file holds. Raises BadPath, and FileNotFoundError."""
    problem, file = "", place.name or "."
    try:
        with entered(place.parent) as folder:
            about = os.stat(file, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(about.st_mode):
                problem = "is a folder, not a file. List it with search_files, target 'files'"
            elif not stat.S_ISREG(about.st_mode):
                problem = "is not a plain file"
            elif about.st_size > LARGEST_FILE:
                problem = f"is too large to read ({about.st_size:,} bytes). Look at a part of it "
                problem += "with terminal: head, tail, sed or grep"
            else:
                # A link that was put there a moment ago is not followed, a pipe not waited for.
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(os.open(file, flags, dir_fd=folder), "rb") as opened:
                    return opened.read()
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(name) from None
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    raise BadPath(f"{name!r} {problem}.")


def showable(text: str) -> str:
    """A text, or a path, that may hold bytes which are no UTF-8, as one that can be shown."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def replace_file(place: Path, data: bytes) -> None:
    """Write a file whole: whoever looks finds the old content or the new. A file that was there
    keeps its mode, and folders that are missing are made. Raises OSError.
    """
    with entered(place.parent, create=True) as folder:
        mode = None
        with suppress(FileNotFoundError):
            about = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
            mode = stat.S_IMODE(about.st_mode) if stat.S_ISREG(about.st_mode) else None
        put_file(folder, place.name, io.BytesIO(data), mode=mode, sync=True)


def put_file(
    folder: int,
    name: str,
    source: IO[bytes],
    *,
    mode: int | None = None,
    owner: tuple[int, int] | None = None,
    sync: bool = False,
) -> None:
    """Write a file of an open folder whole. Raises OSError."""
    beside = f".{secrets.token_hex(8)}{UNFINISHED}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    opened = os.open(beside, flags, 0o666 if mode is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(opened, "wb") as file:
            shutil.copyfileobj(source, file)
            file.flush()
            if owner is not None:
                with suppress(OSError):  # only root gives files away
                    os.chown(opened, *owner)
            if mode is not None:
                os.fchmod(opened, mode)
            if sync:
                os.fsync(opened)
        os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):  # there only if something went wrong
            os.unlink(beside, dir_fd=folder)
