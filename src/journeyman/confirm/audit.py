"""The audit log: the anchor of its head, verification of the chain, masking, and export."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from journeyman.confirm.digest import digest_of, fingerprint_of
from journeyman.confirm.schemas import Verified
from journeyman.records.confirmation import Confirmation
from journeyman.records.errors import AuditBroken, OutsideProblem, WrongInput
from journeyman.redaction.masking import mask_parameters
from journeyman.store.confirmations import Confirmations

_SEQ_DIGITS = 20
_MIN_DIGITS = 16
"""Digits of a digest that a notice shows, enough to distinguish heads."""
_MAX_PROBLEMS = 20
_MAX_DETAILS_BYTES = 8_192


def audited_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters for the audit: with secrets masked, and only their size if they are
    long. The digest in the same entry covers all of them, and the card has them.
    """
    size = len(msgspec.json.encode(details))
    return (
        mask_parameters(details)
        if size <= _MAX_DETAILS_BYTES
        else {"[left out]": f"{size:,} bytes"}
    )


class Anchor:
    """The audit's head in a file of its own, which reveals that entries at the end were removed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[int, str] | None:
        """Return the anchored head, or None if there is none."""
        try:
            text = self.path.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise OutsideProblem(
                f"The audit's anchor {self.path} cannot be read: {error}. Find out who changed it."
            ) from error
        return read_head(text, f"The audit's anchor {self.path}")

    def write(self, seq: int, digest: str, *, lowers: bool = False) -> None:
        """Anchor the head, unless another process has anchored a later one."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            anchored = os.pread(file, _SEQ_DIGITS, 0)
            if lowers or not anchored.isdigit() or int(anchored) <= seq:
                os.pwrite(file, f"{seq:0{_SEQ_DIGITS}d}:{digest}\n".encode(), 0)
        finally:
            os.close(file)

    def checked(self, confirmations: Confirmations) -> tuple[int, str] | None:
        """Return the anchored head. Raise AuditBroken if the audit does not reach it."""
        anchored = self.read()
        problem, _ = _end_problem(confirmations, anchored, confirmations.audit_head()[0])
        if anchored is not None and problem:
            raise AuditBroken(
                f"The audit does not match the head anchored in {self.path}: {problem}. Find out "
                "who changed the database; for details run: journeyman confirm audit verify. To "
                "continue with the audit as it is, which is recorded in it: journeyman confirm "
                "audit reset"
            )
        return anchored


def read_head(text: str, where: str) -> tuple[int, str]:
    """Parse a head as written in the file, in notices and on the command line."""
    seq, colon, digest = text.strip().rstrip("…").partition(":")
    digest = digest.removeprefix("sha256:")
    if not (colon and seq.isdecimal() and _MIN_DIGITS <= len(digest) <= 64):
        raise OutsideProblem(
            f"{where} is not a head of the audit. Write a number, a colon and at least "
            f"{_MIN_DIGITS} hexadecimal digits, as notices show it."
        )
    return int(seq), digest


def verify(confirmations: Confirmations, anchored: tuple[int, str] | None) -> Verified:
    """Check that every entry follows the previous one, every card matches its entries, and the
    chain reaches the anchored head. Without an anchored head, an audit that has entries fails,
    because its end could have been removed.
    """
    trail = confirmations.checked(_recomputed)
    problems = list(trail.problems)
    problem, at = _end_problem(confirmations, anchored, trail.seq)
    if problem:
        problems.append((at, problem))
    # Problems of the chain come first: they may be what makes a card look wrong.
    problems.sort(key=lambda problem: problem[0] is None)
    broken_at = problems[0][0] if problems else None
    return Verified(
        ok=not problems,
        entries=trail.seq if broken_at is None else broken_at - 1,
        head=f"{trail.seq}:{trail.digest}",
        broken_at=broken_at,
        problem="; ".join(text for _, text in problems[:_MAX_PROBLEMS]),
        anchor="" if anchored is None else f"{anchored[0]}:{anchored[1]}",
    )


def _recomputed(card: Confirmation) -> tuple[str, str]:
    try:
        return digest_of(card, card.approved_details), fingerprint_of(card)
    except WrongInput:
        return "", ""


def _end_problem(
    confirmations: Confirmations, anchored: tuple[int, str] | None, last: int
) -> tuple[str, int | None]:
    if anchored is None:
        problem = "there is no anchored head to compare with: entries may have been removed"
        return problem if last else "", None
    seq, digest = anchored
    if seq > last:
        return f"entries {last + 1} to {seq} were removed", last + 1
    entries = confirmations.audit(limit=1, before=seq + 1, after=seq - 1)
    if seq and not (entries and entries[0].digest.startswith(digest)):
        return f"entry {seq} is not the one that was anchored: the chain was rewritten", seq
    return "", None


def export_lines(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of the export: an entry's chained text with its digest added as the last
    field.
    """
    return (f'{text[:-1]},"digest":"{digest}"}}\n' for text, digest in entries)
