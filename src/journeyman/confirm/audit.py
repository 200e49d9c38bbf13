"""The audit's noted head, the check of every entry and card against the chain, and the export."""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, starmap
from pathlib import Path
from typing import Any, Literal

import msgspec

from journeyman.confirm.digest import digest_of, fingerprint_of
from journeyman.confirm.schemas import Verified
from journeyman.records.confirmation import Confirmation
from journeyman.records.errors import AuditBroken, OutsideProblem, WrongInput
from journeyman.store.confirmations import Confirmations

Format = Literal["jsonl", "csv"]

_COLUMNS = ("seq", "at", "kind", "actor", "confirmation", "about", "previous", "digest")
_SEQ_DIGITS = 20
_SHORTEST = 16
"""How many digits of a digest a notice shows; so many are enough to tell heads apart."""
_MOST_TOLD = 20
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Anchor:
    """The audit's head in a file of its own, so that entries cut off at the end are missed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[int, str] | None:
        """The head as noted last, or None where nothing was noted."""
        try:
            text = self.path.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise OutsideProblem(
                f"The audit's anchor {self.path} cannot be read: {error}. Look who changed it."
            ) from error
        return read_head(text, f"The audit's anchor {self.path}")

    def write(self, seq: int, digest: str, *, lowers: bool = False) -> None:
        """Note the head, unless another process has noted a later one."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            noted = os.pread(file, _SEQ_DIGITS, 0)
            if lowers or not noted.isdigit() or int(noted) <= seq:
                os.pwrite(file, f"{seq:0{_SEQ_DIGITS}d}:{digest}\n".encode(), 0)
        finally:
            os.close(file)

    def checked(self, confirmations: Confirmations) -> tuple[int, str] | None:
        """The noted head, after making sure that the audit reaches it. Raises AuditBroken."""
        noted = self.read()
        problem, _ = _end_problem(confirmations, noted, confirmations.audit_head()[0])
        if noted is not None and problem:
            raise AuditBroken(
                f"The audit does not fit the head noted in {self.path}: {problem}. Find out who "
                "changed the database; see it whole with: journeyman confirm audit verify. To go "
                "on with the audit as it is, and have that written down: journeyman confirm audit "
                "reset"
            )
        return noted


def read_head(text: str, where: str) -> tuple[int, str]:
    """A head as it is written in the file, in notices and on the command line."""
    seq, colon, digest = text.strip().rstrip("…").partition(":")
    digest = digest.removeprefix("sha256:")
    if not (colon and seq.isdecimal() and _SHORTEST <= len(digest) <= 64):
        raise OutsideProblem(
            f"{where} is not a head of the audit: it should be a number, a colon and at least "
            f"{_SHORTEST} hexadecimal digits, as notices show it."
        )
    return int(seq), digest


def verify(confirmations: Confirmations, noted: tuple[int, str] | None) -> Verified:
    """Whether every entry follows the one before, every card is as its entries say, and the chain
    reaches at least as far as the noted head. Without a noted head an audit that has entries does
    not pass: its end could have been cut.
    """
    trail = confirmations.checked(_recomputed)
    problems = list(trail.problems)
    problem, at = _end_problem(confirmations, noted, trail.seq)
    if problem:
        problems.append((at, problem))
    # What is wrong with the chain comes first: a card may only look wrong because of it.
    problems.sort(key=lambda one: one[0] is None)
    broken_at = problems[0][0] if problems else None
    return Verified(
        ok=not problems,
        entries=trail.seq if broken_at is None else broken_at - 1,
        head=f"{trail.seq}:{trail.digest}",
        broken_at=broken_at,
        problem="; ".join(what for _, what in problems[:_MOST_TOLD]),
        anchor="" if noted is None else f"{noted[0]}:{noted[1]}",
    )


def _recomputed(card: Confirmation) -> tuple[str, str]:
    try:
        return digest_of(card, card.approved_details), fingerprint_of(card)
    except WrongInput:
        return "", ""


def _end_problem(
    confirmations: Confirmations, noted: tuple[int, str] | None, last: int
) -> tuple[str, int | None]:
    if noted is None:
        unsure = "there is no noted head to hold the end against: entries may have been cut off"
        return unsure if last else "", None
    seq, digest = noted
    if seq > last:
        return f"entries {last + 1} to {seq} were cut off", last + 1
    found = confirmations.audit(limit=1, before=seq + 1, after=seq - 1)
    if seq and not (found and found[0].digest.startswith(digest)):
        return f"entry {seq} is not the one that was noted: the chain was made anew", seq
    return "", None


def exported(entries: Iterable[tuple[str, str]], format_: Format) -> Iterator[str]:
    """The lines of the file; in JSON, an entry's chained text with its digest put in last."""
    if format_ == "jsonl":
        yield from (f'{text[:-1]},"digest":"{digest}"}}\n' for text, digest in entries)
        return
    line = io.StringIO()
    rows = csv.writer(line)
    for cells in chain((_COLUMNS,), starmap(_cells, entries)):
        # A spreadsheet would take such a cell for a formula.
        rows.writerow(f"'{one}" if str(one)[:1] in _FORMULA else one for one in cells)
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _cells(text: str, digest: str) -> Sequence[Any]:
    try:
        entry: dict[str, Any] = msgspec.json.decode(text)
        at = datetime.fromtimestamp(entry["at"], UTC).isoformat()
        about = msgspec.json.encode(entry["about"]).decode()
        entry |= {"at": at, "about": about, "digest": digest}
        return [entry[name] for name in _COLUMNS]
    except (ValueError, TypeError, KeyError, OverflowError, OSError):
        # Somebody changed it: the text as it is stored, in the place of what it was about.
        return ["", "", "", "", "", text, "", digest]
