"""Delivers the result of a run to the terminal, a file, or any service that apprise supports."""

import os
import stat
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

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
    "missed": "missed due times",
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


def run_message(job: Job, run: Run) -> RunMessage:
    """Return the message about a run, with the job as it is after the run. Its last line says where
    the full output is.
    """
    facts = [run.model] if run.session else []
    if run.status != "missed":
        facts.append(f"{(run.ended_at or run.started_at) - run.started_at:.0f} s")
    if run.tokens is not None:
        facts.append(f"{run.tokens:,} tokens")
    if run.cost_usd:
        facts.append(f"${run.cost_usd:.4f}")
    full_output = f"Full output: {run.output}" if run.output else ""
    parts, title = [run.answer, *run.remarks], job.name
    if not run.is_good:
        title = f"{job.name} {_STATUS_PHRASES[run.status]}"
        answer = run.answer and f"Its answer:\n{run.answer}"
        parts = [f"The job {title}: {run.reason}", answer, *run.remarks, job.remark]
        parts.append(f"More: journeyman jobs show {job.name}")
    parts.append(f"({'. '.join(filter(None, (', '.join(facts), full_output)))})")
    body = "\n\n".join(part.strip() for part in parts if part.strip())
    return RunMessage(title=title, body=body, is_good=run.is_good)


def check_destinations(places: Sequence[str]) -> None:
    """Raise WrongInput, BadSetting or MissingPart for a place that cannot be delivered to."""
    for position, place in enumerate(places, start=1):
        if place.startswith(FILE):
            _file_path(place)
        elif place != TERMINAL:
            _open_service(place, position)


def destination_label(place: str) -> str:
    """Return a place for lists and messages: of an address only the service, the rest is secret."""
    if place == TERMINAL or place.startswith(FILE):
        return readable(place)
    scheme = url_scheme(place)
    return f"{scheme} (…)" if scheme else "an address (…)"


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
    text = f"{heading}\n\n{readable(message.body)}\n\n"
    delivered: list[str] = []
    undelivered: list[str] = []
    for position, place in enumerate(places, start=1):
        label = destination_label(place)
        try:
            if place == TERMINAL:
                terminal(text)
            elif place.startswith(FILE):
                _append(_file_path(place), text)
            else:
                service = _open_service(place, position, attempts=attempts, pause_s=pause_s)
                call_within(limit_s, partial(_send, service, message))
        except (DeliveryFailed, JourneymanError) as error:
            undelivered.append(f"{label}: {error}")
        except (OSError, ValueError) as error:  # ValueError: the terminal is closed
            reason = getattr(error, "strerror", None) or "it cannot be written to"
            undelivered.append(f"{label}: {reason}")
        except Exception:  # noqa: BLE001 - from a service's own code, or the caller's terminal
            undelivered.append(f"{label}: it failed unexpectedly")
        else:
            delivered.append(label)
    return DeliveryReport(delivered=tuple(delivered), undelivered=tuple(undelivered))


def _file_path(place: str) -> Path:
    name = place.removeprefix(FILE)
    path = Path(name)
    is_path = path.is_absolute() and path.anchor == "/" and not name.endswith("/")
    if not is_path or "\0" in name or path.is_symlink() or (path.exists() and not path.is_file()):
        raise WrongInput(
            f"A job cannot deliver to {readable(place)!r}: it must be the absolute path of a plain "
            "file, not a link. Write it as in file:/home/me/answers.md."
        )
    return path


def _open_service(place: str, position: int, **retries: Any) -> NotificationService:
    """Return the service behind an address. `position` names it in errors, which show no secret."""
    label = f"The delivery address number {position}"
    if not url_scheme(place):
        raise WrongInput(
            f"{label} is not valid: write terminal, file:/path/of/a/file, or the address of a "
            "service, as in ntfy://…"
        )
    return open_service(place, label=label, about="Journeyman jobs", extra="jobs", **retries)


def _send(service: NotificationService, message: RunMessage) -> None:
    body = _outgoing(readable(message.body))
    service.send(
        _outgoing(readable_line(message.title)),
        lambda limit, _: truncate_middle(body, limit),
        "success" if message.is_good else "failure",
    )


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
