"""Delivers the result of a run to the terminal, a file, or any service that apprise supports."""

import os
import stat
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from journeyman.notify.services import (
    DeliveryFailed,
    NotificationService,
    call_within,
    open_service,
    url_scheme,
)
from journeyman.records.errors import JourneymanError, WrongInput
from journeyman.records.job import Job, Run, RunStatus
from journeyman.redaction.masking import mask_text
from journeyman.text.display import break_room_mentions, readable, readable_line
from journeyman.text.truncation import truncate_middle

TERMINAL: Final = "terminal"
FILE: Final = "file:"
_LIMIT_S: Final = 30.0

_STATUS_PHRASES: dict[RunStatus, str] = {
    "failed": "failed",
    "blocked": "was not started",
    "timed_out": "timed out",
    "over_budget": "exceeded its budget",
    "interrupted": "was stopped",
    "crashed": "ended abruptly",
}


class RunMessage(Struct, frozen=True, kw_only=True):
    """The message about a run. Where it is too long, the last line of the body is kept."""

    title: str
    body: str
    is_good: bool


class DeliveryReport(Struct, frozen=True, kw_only=True):
    """The destinations that have the message, and the others as `name: reason`."""

    delivered: tuple[str, ...]
    undelivered: tuple[str, ...]


class _Delivery(Struct, frozen=True, kw_only=True):
    """A message on its way. `text` is the message under a heading, for terminals and files."""

    message: RunMessage
    text: str
    terminal: Callable[[str], None]
    attempts: int
    pause_s: float
    limit_s: float


class Destination:
    """One place that messages go to. A new kind is a subclass, listed in `_DESTINATIONS`.
    `position` is its number in the job's list, by which errors name an address.
    """

    def __init__(self, place: str, position: int) -> None:
        self.place = place
        self.position = position

    @classmethod
    def accepts(cls, place: str) -> bool:
        """Return whether this kind of destination handles the place."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The destination as lists and messages show it, without secrets."""
        return readable(self.place)

    def check(self) -> None:
        """Raise WrongInput, BadSetting or MissingPart if nothing can be delivered here."""

    def find_problem(self) -> str:
        """Return what would prevent a delivery now; the problem may be gone by the next run."""
        return ""

    def deliver(self, delivery: _Delivery) -> None:
        """Deliver a message. Raise DeliveryFailed, JourneymanError or OSError."""
        raise NotImplementedError


class TerminalDestination(Destination):
    @classmethod
    def accepts(cls, place: str) -> bool:
        return place == TERMINAL

    def deliver(self, delivery: _Delivery) -> None:
        delivery.terminal(delivery.text)


class FileDestination(Destination):
    """A plain file that messages are appended to."""

    @classmethod
    def accepts(cls, place: str) -> bool:
        return place.startswith(FILE)

    def check(self) -> None:
        self._path()

    def find_problem(self) -> str:
        folder = self._path().parent
        if folder.is_dir():
            return ""
        return f"{self.label}: the folder {readable(str(folder))} does not exist."

    def deliver(self, delivery: _Delivery) -> None:
        _append(self._path(), delivery.text)

    def _path(self) -> Path:
        name = self.place.removeprefix(FILE)
        path = Path(name)
        is_path = path.is_absolute() and path.anchor == "/" and not name.endswith("/")
        if (
            not is_path
            or "\0" in name
            or path.is_symlink()
            or (path.exists() and not path.is_file())
        ):
            raise WrongInput(
                f"A job cannot deliver to {readable(self.place)!r}: it must be the absolute path "
                "of a plain file, not a link. Write it as in file:/home/me/answers.md."
            )
        return path


class ServiceDestination(Destination):
    """A notification service behind an address, which is secret except for its scheme."""

    @classmethod
    def accepts(cls, place: str) -> bool:  # noqa: ARG003 - whatever the other kinds do not accept
        return True

    @property
    def label(self) -> str:
        scheme = url_scheme(self.place)
        return f"{scheme} (…)" if scheme else "an address (…)"

    def check(self) -> None:
        self._open()

    def deliver(self, delivery: _Delivery) -> None:
        service, message = self._open(delivery.attempts, delivery.pause_s), delivery.message

        def send() -> None:
            body = _outgoing(readable(message.body))
            service.send(
                _outgoing(readable_line(message.title)),
                lambda limit, _: truncate_middle(body, limit),
                "success" if message.is_good else "failure",
            )

        call_within(delivery.limit_s, send)

    def _open(self, attempts: int = 1, pause_s: float = 0.0) -> NotificationService:
        if not url_scheme(self.place):
            raise WrongInput(
                f"The delivery address number {self.position} is not valid: write terminal, "
                "file:/path/of/a/file, or the address of a service, as in ntfy://…"
            )
        return open_service(
            self.place,
            label=f"The delivery address number {self.position}",
            about="Journeyman jobs",
            extra="jobs",
            attempts=attempts,
            pause_s=pause_s,
        )


_DESTINATIONS: Final = (TerminalDestination, FileDestination, ServiceDestination)
"""In order: the first kind that accepts a place handles it."""


def run_message(job: Job, run: Run) -> RunMessage:
    """Return the message about a run, with the job as it is after the run. Its last line says where
    the full output is.
    """
    facts = [run.model] if run.session else []
    facts.append(f"{(run.ended_at or run.started_at) - run.started_at:.0f} s")
    if run.tokens is not None:
        facts.append(f"{run.tokens:,} tokens")
    if run.cost_usd:
        facts.append(f"${run.cost_usd:.4f}")
    full_output = f". Full output: {run.output}" if run.output else ""
    parts, title = [run.answer, *run.remarks], job.name
    if not run.is_good:
        title = f"{job.name} {_STATUS_PHRASES[run.status]}"
        answer = run.answer and f"Its answer:\n{run.answer}"
        parts = [f"The job {title}: {run.reason}", answer, *run.remarks, job.remark]
        parts.append(f"More: journeyman jobs show {job.name}")
    parts.append(f"({', '.join(facts)}{full_output})")
    body = "\n\n".join(part.strip() for part in parts if part.strip())
    return RunMessage(title=title, body=body, is_good=run.is_good)


def check_destinations(places: Sequence[str]) -> None:
    """Raise WrongInput, BadSetting or MissingPart for a place that cannot be delivered to."""
    for destination in _destinations(places):
        destination.check()


def find_destination_problems(places: Sequence[str]) -> list[str]:
    """Return what would prevent deliveries now; the problems may be gone by the next run."""
    problems = (destination.find_problem() for destination in _destinations(places))
    return [problem for problem in problems if problem]


def destination_label(place: str) -> str:
    """Return a place for lists and messages: of an address only the service, the rest is secret."""
    return _destination(place).label


def deliver(
    message: RunMessage,
    places: Sequence[str],
    *,
    terminal: Callable[[str], None],
    job: str,
    at: float,
    attempts: int = 3,
    pause_s: float = 2.0,
    limit_s: float = _LIMIT_S,
) -> DeliveryReport:
    """Deliver a message to every place, each within `limit_s`. Failures are in the report."""
    time = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    heading = f"## {readable_line(message.title)}\n{time}, job {readable_line(job)}"
    delivery = _Delivery(
        message=message,
        text=f"{heading}\n\n{readable(message.body)}\n\n",
        terminal=terminal,
        attempts=attempts,
        pause_s=pause_s,
        limit_s=limit_s,
    )
    delivered: list[str] = []
    undelivered: list[str] = []
    for destination in _destinations(places):
        try:
            destination.deliver(delivery)
        except (DeliveryFailed, JourneymanError) as error:
            undelivered.append(f"{destination.label}: {error}")
        except (OSError, ValueError) as error:  # ValueError: the terminal is closed
            reason = getattr(error, "strerror", None) or "it cannot be written to"
            undelivered.append(f"{destination.label}: {reason}")
        except Exception:  # noqa: BLE001 - from a service's own code, or the caller's terminal
            undelivered.append(f"{destination.label}: it failed unexpectedly")
        else:
            delivered.append(destination.label)
    return DeliveryReport(delivered=tuple(delivered), undelivered=tuple(undelivered))


def _destinations(places: Sequence[str]) -> list[Destination]:
    return [_destination(place, position) for position, place in enumerate(places, start=1)]


def _destination(place: str, position: int = 1) -> Destination:
    return next(kind for kind in _DESTINATIONS if kind.accepts(place))(place, position)


def _append(path: Path, text: str) -> None:
    """Append to a file in one write, so that two jobs do not interleave. Raise OSError or
    DeliveryFailed.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise DeliveryFailed("it is not a plain file")
        content = text.encode()
        if os.write(file, content) < len(content):
            raise DeliveryFailed("only a part could be written; the disk may be full")
    finally:
        os.close(file)


def _outgoing(text: str) -> str:
    """Return text that may leave this machine: secrets masked, room mentions broken. People's names
    and addresses stay, because an answer may be about them.
    """
    return break_room_mentions(mask_text(text))
