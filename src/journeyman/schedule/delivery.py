"""Where a job's answer goes: the terminal, a file, or any service that apprise knows. Each place is
tried by itself and for a bounded time, and what came of it is told without an address. What the
answer is, and whether it is delivered at all, is decided elsewhere.
"""

import os
import queue
import re
import stat
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from journeyman.confirm.masking import masked_text
from journeyman.confirm.notices.channel import NotTold
from journeyman.records.errors import JourneymanError, MissingPart, WrongInput
from journeyman.schedule.output import one_line, readable

if TYPE_CHECKING:
    from journeyman.confirm.notices.apprise_service import AppriseService

TERMINAL: Final = "terminal"
FILE: Final = "file:"
_LIMIT_S: Final = 30.0
_LONGEST_TITLE: Final = 120
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


class Message(Struct, frozen=True, kw_only=True):
    """What is delivered. The last line of the body stays when the rest is too long for a place."""

    title: str
    body: str
    is_good: bool


class Delivered(Struct, frozen=True, kw_only=True):
    """What came of it: the places that have it, and the others as `name: reason`."""

    delivered: tuple[str, ...]
    undelivered: tuple[str, ...]


def check_places(places: Sequence[str]) -> None:
    """Raise WrongInput or BadSetting for a place that can never be delivered to, and MissingPart
    when what it needs is not installed.
    """
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
    """Deliver a message to every place, services in up to so many `attempts`, none of them for
    longer than `limit_s` in all. Whatever goes wrong is in what is returned.
    """
    delivered: list[str] = []
    undelivered: list[str] = []
    for position, place in enumerate(places, start=1):
        shown = shown_place(place)
        try:
            if place == TERMINAL:
                terminal(_as_text(message, job, at))
            elif place.startswith(FILE):
                _append(_file_of(place), _as_text(message, job, at))
            else:
                service = _service_of(place, position, attempts, pause_s)
                _send(service, message, limit_s)
        except (NotTold, JourneymanError, OSError, ValueError) as error:
            undelivered.append(f"{shown}: {_reason(error)}")
        except Exception:  # noqa: BLE001 - of a service's own code, or of the caller's terminal
            undelivered.append(f"{shown}: it broke off")
        else:
            delivered.append(shown)
    return Delivered(delivered=tuple(delivered), undelivered=tuple(undelivered))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or "it cannot be written to"
    if isinstance(error, NotTold | JourneymanError):
        return str(error)
    return "it cannot be written to"  # a terminal that is closed


def _as_text(message: Message, job: str, at: float) -> str:
    time_ = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"## {_title(message)}\n{time_}, job {one_line(job)}\n\n{readable(message.body)}\n\n"


def _title(message: Message) -> str:
    title = one_line(message.title)
    return title if len(title) <= _LONGEST_TITLE else f"{title[:_LONGEST_TITLE]}…"


def _file_of(place: str) -> Path:
    """The file that a place names. Raises WrongInput when it cannot be one."""
    named = place.removeprefix(FILE)
    path = Path(named)
    shown = readable(place)
    if not path.is_absolute() or path.anchor != "/" or "\0" in named or named.endswith("/"):
        raise WrongInput(
            f"A job cannot deliver to {shown!r}: write the whole path of a file, as in "
            "file:/home/me/answers.md."
        )
    if path.is_symlink():
        raise WrongInput(
            f"A job cannot deliver to {shown!r}: it is a link. Write the path it leads to."
        )
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "no plain file"
        raise WrongInput(f"A job cannot deliver to {shown!r}: it is {what}. Name a file.")
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
    called = f"The place to deliver to number {position}"
    return AppriseService(
        url, called=called, about="Journeyman jobs", attempts=attempts, pause_s=pause_s
    )


def _send(service: "AppriseService", message: Message, limit_s: float) -> None:
    """Send, and give up on it after the time limit: a thread cannot be ended, only left. Raises
    NotTold.
    """
    outcome: queue.SimpleQueue[NotTold | None] = queue.SimpleQueue()

    def call() -> None:
        came: NotTold | None = NotTold("it broke off")
        try:
            # What leaves this machine leaves without secrets; people's names and addresses stay,
            # because an answer may be about them.
            body = _calling_nobody(masked_text(readable(message.body)))
            service.send(
                _calling_nobody(masked_text(_title(message))),
                lambda limit, _: _fitted(body, limit),
                "success" if message.is_good else "failure",
            )
            came = None
        except NotTold as error:
            came = error
        except Exception:  # noqa: BLE001, S110 - its text may hold the address
            pass
        finally:
            outcome.put(came)

    threading.Thread(target=call, name="delivering", daemon=True).start()
    try:
        failed = outcome.get(timeout=limit_s)
    except queue.Empty:
        raise NotTold(f"no answer within {limit_s:g} s") from None
    if failed is not None:
        raise failed


def _calling_nobody(text: str) -> str:
    """A text that calls no room together; links in it can still be used."""
    return _CALLS_A_ROOM.sub(lambda found: f"{found[0]} ", text)


def _fitted(text: str, limit: int) -> str:
    """A text of at most so many characters: cut in the middle, because the last line says where
    all of it is.
    """
    text = text.rstrip() or "(nothing)"
    if _size(text) <= limit:
        return text
    end = text.rpartition("\n")[2]
    note = f"\n[… cut here: {len(text):,} characters are too long for this service …]\n"
    room = limit - _size(note) - _size(end)
    if room < 0:  # a service for a few words
        return _beginning(text, limit)
    return _beginning(text, room) + note + end


def _beginning(text: str, room: int) -> str:
    # A character outside the first plane can count as two, so this may be a little too short.
    cut = text[: max(0, room)]
    return cut[: max(0, len(cut) - (_size(cut) - len(cut)))]


def _size(text: str) -> int:
    # As the services count that count the most: in UTF-16 units.
    return len(text) + sum(character > "\uffff" for character in text)
