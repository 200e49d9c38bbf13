"""Delivers what came of a run: to the terminal, a file, or any service that apprise knows."""

import os
import re
import stat
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from journeyman.confirm.masking import masked_text
from journeyman.confirm.notices.text import NotTold
from journeyman.jobs.output import one_line, readable
from journeyman.records.errors import JourneymanError, MissingPart, WrongInput
from journeyman.records.job import Job, Run, RunStatus

if TYPE_CHECKING:
    from journeyman.confirm.notices.apprise_service import AppriseService

TERMINAL: Final = "terminal"
FILE: Final = "file:"
_LIMIT_S: Final = 30.0
_URL: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]{0,30})://")

# Words with which chat services call a whole room. The first two do so in the middle of a word
# too; the others are left alone there, because of mail addresses and links.
_CALLS_A_ROOM: Final = re.compile(
    r"@(?=[*_]{0,3}(?:everyone|here))"
    r"|(?<![\w.+/-])@(?=[*_]{0,3}(?:channel|all|room|group|team|online|topic|stream)\b)"
    r"|<(?=!(?:everyone|here|channel|subteam)|@&|users/all|at\b[^>]{0,40}\ball\b)"
    r"|\[(?=CQ:at,)|\(met\)(?=all\b)",
    re.IGNORECASE,
)
_ENDED: dict[RunStatus, str] = {
    "failed": "failed",
    "blocked": "was not begun",
    "timed_out": "ran out of time",
    "over_budget": "reached the limit of what it may use",
    "interrupted": "was stopped",
    "crashed": "broke off",
}


class Message(Struct, frozen=True, kw_only=True):
    """What is delivered. The last line of the body stays when the rest is too long for a place."""

    title: str
    body: str
    is_good: bool


class Delivered(Struct, frozen=True, kw_only=True):
    """What came of it: the places that have it, and the others as `name: reason`."""

    delivered: tuple[str, ...]
    undelivered: tuple[str, ...]


def message_of(job: Job, run: Run) -> Message:
    """The message on a run, with the job as it is after it; the last line says where it all is."""
    facts = [run.model] if run.session else []
    facts.append(f"{(run.ended_at or run.started_at) - run.started_at:.0f} s")
    if run.tokens is not None:
        facts.append(f"{run.tokens:,} tokens")
    if run.cost_usd:
        facts.append(f"${run.cost_usd:.4f}")
    where = f". All of it: {run.output}" if run.output else ""
    parts, title = [run.answer, *run.remarks], job.name
    if not run.is_good:
        title = f"{job.name} {_ENDED[run.status]}"
        said = run.answer and f"What it said:\n{run.answer}"
        parts = [f"The job {title}: {run.reason}", said, *run.remarks, job.remark]
        parts.append(f"More: journeyman jobs show {job.name}")
    parts.append(f"({', '.join(facts)}{where})")
    body = "\n\n".join(part.strip() for part in parts if part.strip())
    return Message(title=title, body=body, is_good=run.is_good)


def check_places(places: Sequence[str]) -> None:
    """Raise WrongInput, BadSetting or MissingPart for a place that cannot be delivered to."""
    for position, place in enumerate(places, start=1):
        if place.startswith(FILE):
            _file_of(place)
        elif place != TERMINAL:
            _service_of(place, position)


def find_trouble(places: Sequence[str]) -> list[str]:
    """What would go wrong with places now, though it may be well when the time comes."""
    return [
        f"{shown_place(place)}: the folder {readable(str(folder))} is not there."
        for place in places
        if place.startswith(FILE) and not (folder := _file_of(place).parent).is_dir()
    ]


def shown_place(place: str) -> str:
    """A place for lists and messages: of an address only the service, for the rest is secret."""
    if place == TERMINAL or place.startswith(FILE):
        return readable(place)
    found = _URL.match(place)
    return f"{found[1].lower()} (…)" if found else "an address (…)"


def deliver(
    message: Message,
    places: Sequence[str],
    *,
    terminal: Callable[[str], None],
    job: str,
    at: float,
    attempts: int = 3,
    pause_s: float = 2.0,
    limit_s: float = _LIMIT_S,
) -> Delivered:
    """Deliver a message to every place within `limit_s`; what went wrong is in the result."""
    time = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    head = f"## {one_line(message.title)}\n{time}, job {one_line(job)}"
    text = f"{head}\n\n{readable(message.body)}\n\n"
    delivered: list[str] = []
    undelivered: list[str] = []
    for position, place in enumerate(places, start=1):
        shown = shown_place(place)
        try:
            if place == TERMINAL:
                terminal(text)
            elif place.startswith(FILE):
                _append(_file_of(place), text)
            else:
                _send(_service_of(place, position, attempts, pause_s), message, limit_s)
        except (NotTold, JourneymanError) as error:
            undelivered.append(f"{shown}: {error}")
        except (OSError, ValueError) as error:  # ValueError: a terminal that is closed
            reason = getattr(error, "strerror", None) or "it cannot be written to"
            undelivered.append(f"{shown}: {reason}")
        except Exception:  # noqa: BLE001 - of a service's own code, or of the caller's terminal
            undelivered.append(f"{shown}: it broke off")
        else:
            delivered.append(shown)
    return Delivered(delivered=tuple(delivered), undelivered=tuple(undelivered))


def _file_of(place: str) -> Path:
    """The file that a place names. Raises WrongInput when it cannot be one."""
    named = place.removeprefix(FILE)
    path = Path(named)
    is_path = path.is_absolute() and path.anchor == "/" and not named.endswith("/")
    if not is_path or "\0" in named or path.is_symlink() or (path.exists() and not path.is_file()):
        raise WrongInput(
            f"A job cannot deliver to {readable(place)!r}: write the whole path of a plain file, "
            "no link, as in file:/home/me/answers.md."
        )
    return path


def _append(path: Path, text: str) -> None:
    """Add to a file in one write, so that two jobs do not mix. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    opened = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise NotTold("it is no plain file")
        content = text.encode()
        if os.write(opened, content) < len(content):
            raise NotTold("only a part could be written; the disk may be full")
    finally:
        os.close(opened)


def _service_of(
    url: str, position: int, attempts: int = 1, pause_s: float = 0.0
) -> "AppriseService":
    """The service at an address. Raises WrongInput, BadSetting and MissingPart."""
    if not _URL.match(url):
        raise WrongInput(
            f"The place to deliver to number {position} is none: write terminal, "
            "file:/path/of/a/file, or the address of a service, as in ntfy://…"
        )
    try:
        from journeyman.confirm.notices.apprise_service import AppriseService  # noqa: PLC0415 - heavy
    except MissingPart as missing:
        raise MissingPart(
            "Delivering to a service needs the extra \"jobs\": pip install 'journeyman[jobs]'."
        ) from missing
    return AppriseService(
        url,
        called=f"The place to deliver to number {position}",
        about="Journeyman jobs",
        attempts=attempts,
        pause_s=pause_s,
    )


def _send(service: "AppriseService", message: Message, limit_s: float) -> None:
    """Send within the time limit: a thread cannot be ended, only left. Raises NotTold."""
    failures: list[NotTold] = []

    def sent(text: str) -> str:
        # What leaves this machine leaves without secrets, and calls no room together; people's
        # names and addresses stay, because an answer may be about them.
        return _CALLS_A_ROOM.sub(lambda found: f"{found[0]} ", masked_text(text))

    def call() -> None:
        try:
            body = sent(readable(message.body))
            kind: Final = "success" if message.is_good else "failure"
            service.send(sent(one_line(message.title)), lambda limit, _: _fitted(body, limit), kind)
        except NotTold as error:
            failures.append(error)
        except Exception:  # noqa: BLE001 - its text may hold the address
            failures.append(NotTold("it broke off"))

    thread = threading.Thread(target=call, name="delivering", daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        raise NotTold(f"no answer within {limit_s:g} s")
    if failures:
        raise failures[0]


def _fitted(text: str, limit: int) -> str:
    """A text of at most this many characters, counted as by the services that count the most, in
    UTF-16 units: cut in the middle, because the last line says where all of it is.
    """
    text = text.rstrip() or "(nothing)"
    coded, room = text.encode("utf-16-le"), 2 * max(0, limit)
    if len(coded) <= room:
        return text
    note = f"\n[… cut here: {len(text):,} characters are too long for this service …]\n"
    end = note + text.rpartition("\n")[2]
    left = room - len(end.encode("utf-16-le"))
    if left < 0:  # a service for a few words
        return coded[:room].decode("utf-16-le", "ignore")
    return coded[:left].decode("utf-16-le", "ignore") + end
