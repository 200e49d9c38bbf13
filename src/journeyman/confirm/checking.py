"""Checking the audit: every link of the chain, and the end of it against the head that was noted
elsewhere.
"""

from pathlib import Path

from journeyman.confirm.answers import Verified
from journeyman.records.errors import AuditBroken
from journeyman.store.confirmations import Confirmations

_NOTHING_NOTED = (
    "the links hold, but there is no noted head to hold the end against: entries may have been "
    "cut off"
)


def verify(confirmations: Confirmations, noted: tuple[int, str] | None) -> Verified:
    """Whether the chain holds, and reaches at least as far as the noted head. Without a noted
    head an audit that has entries does not pass: its end could have been cut.
    """
    anchor = "" if noted is None else f"{noted[0]}:{noted[1]}"
    broken_at, found = confirmations.audit_break()
    if broken_at is not None or isinstance(found, str):
        seq, digest = confirmations.audit_head()
        return Verified(
            ok=False,
            entries=(broken_at or 1) - 1,
            head=f"{seq}:{digest}",
            broken_at=broken_at,
            problem=str(found),
            anchor=anchor,
        )
    # The head that was reached, not one that came meanwhile and was not looked at.
    seq, digest = found
    problem, at = _end_problem(confirmations, noted, seq)
    return Verified(
        ok=not problem,
        entries=seq,
        head=f"{seq}:{digest}",
        broken_at=at,
        problem=problem,
        anchor=anchor,
    )


def _end_problem(
    confirmations: Confirmations, noted: tuple[int, str] | None, last: int
) -> tuple[str, int | None]:
    if noted is None:
        return (_NOTHING_NOTED, None) if last else ("", None)
    seq, digest = noted
    if seq > last:
        return f"entries {last + 1} to {seq} were cut off", last + 1
    if seq and not (confirmations.audit_digest(seq) or "").startswith(digest):
        return f"entry {seq} is not the one that was noted: the chain was made anew", seq
    return "", None


def anchored(confirmations: Confirmations, noted: tuple[int, str] | None, path: Path) -> None:
    """Make sure that the audit reaches the head that was noted: going on would write over it.
    Raises AuditBroken.
    """
    problem, _ = _end_problem(confirmations, noted, confirmations.audit_head()[0])
    if noted is not None and problem:
        raise AuditBroken(
            f"The audit does not fit the head noted in {path}: {problem}. Find out who changed "
            "the database; see it whole with: journeyman confirm audit verify. To go on with the "
            "audit as it is, and have that written down: journeyman confirm audit reset"
        )
