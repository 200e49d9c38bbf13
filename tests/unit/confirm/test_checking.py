"""Checking the audit where there is nothing noted, or the noted head is behind."""

from pathlib import Path

import pytest
from tests.databases import database

from journeyman.confirm.checking import anchored, verify
from journeyman.records.errors import AuditBroken
from journeyman.store.store import Store


def test_the_end_is_held_against_what_was_noted(tmp_path: Path) -> None:
    with Store(database(tmp_path)) as store:
        known, path = store.confirmations, tmp_path / "confirm.anchor"
        empty = verify(known, None)
        assert (empty.ok, empty.entries) == (True, 0)
        with known.writing(1.0) as ledger:
            noted = [(one.seq, one.digest) for one in (ledger.note("viewed", "a") for _ in "abc")]
        for behind in noted:
            found = verify(known, behind)
            assert (found.ok, found.entries) == (True, 3)
            anchored(known, behind, path)
        unnoted = verify(known, None)
        assert (unnoted.ok, unnoted.broken_at) == (False, None)
        assert "may have been cut off" in unnoted.problem
        anchored(known, None, path)
        ahead = verify(known, (5, "a" * 64))
        assert (ahead.ok, ahead.broken_at) == (False, 4)
        another = verify(known, (2, "a" * 64))
        assert (another.ok, another.broken_at) == (False, 2)
        for wrong in ((5, "a" * 64), (2, "a" * 64)):
            with pytest.raises(AuditBroken, match="journeyman confirm audit verify"):
                anchored(known, wrong, path)
