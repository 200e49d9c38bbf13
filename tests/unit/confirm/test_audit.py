"""The anchor file, which stores the audit log's head, and verification of the log against it."""

import stat
from pathlib import Path

import pytest
from tests.databases import database
from tests.tables import table

from journeyman.confirm.audit import Anchor, verify
from journeyman.records.errors import AuditBroken, OutsideProblem
from journeyman.store.store import Store


def test_anchor_returns_the_last_head_written(tmp_path: Path) -> None:
    anchor = Anchor(tmp_path / "new" / "confirm.anchor")
    assert anchor.read() is None
    for seq, digest in ((1, "b" * 64), (99_999_999_999, "a" * 64)):
        anchor.write(seq, digest)
        assert anchor.read() == (seq, digest)
        assert Anchor(anchor.path).read() == (seq, digest)
    assert stat.S_IMODE(anchor.path.stat().st_mode) == 0o600
    anchor.write(2, "c" * 64)  # written late by another process
    assert anchor.read() == (99_999_999_999, "a" * 64)
    anchor.write(2, "c" * 64, lowers=True)
    assert anchor.read() == (2, "c" * 64)


@table(
    "content",
    [b"", b"5", b"x:" + b"a" * 64, b"5:abc", b"\xff", b"-1:" + b"a" * 64],
    ids=["empty", "no_digest", "no_number", "short", "not_text", "negative"],
)
def test_invalid_anchor_file_is_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "confirm.anchor"
    path.write_bytes(content)
    with pytest.raises(OutsideProblem, match=r"confirm\.anchor (is not a head|cannot be read)"):
        Anchor(path).read()


def test_audit_is_verified_against_the_anchor(tmp_path: Path) -> None:
    with Store(database(tmp_path)) as store:
        known, anchor = store.confirmations, Anchor(tmp_path / "confirm.anchor")
        assert anchor.checked(known) is None
        empty = verify(known, None)
        assert (empty.ok, empty.entries) == (True, 0)
        with known.writing(1.0) as ledger:
            noted = [(one.seq, one.digest) for one in (ledger.note("viewed", "a") for _ in "abc")]
        for behind in noted:
            found = verify(known, behind)
            assert (found.ok, found.entries) == (True, 3)
            anchor.write(*behind)
            assert anchor.checked(known) == behind
        unnoted = verify(known, None)
        assert (unnoted.ok, unnoted.broken_at) == (False, None)
        assert "may have been removed" in unnoted.problem
        ahead = verify(known, (5, "a" * 64))
        assert (ahead.ok, ahead.broken_at) == (False, 4)
        another = verify(known, (2, "a" * 64))
        assert (another.ok, another.broken_at) == (False, 2)
        for wrong in ((5, "a" * 64), (2, "a" * 64)):
            anchor.write(*wrong, lowers=True)
            with pytest.raises(AuditBroken, match="journeyman confirm audit verify"):
                anchor.checked(known)
