"""Confirmations expire exactly at their deadline."""

from pathlib import Path
from typing import Any

from tests.databases import database

from journeyman.confirm.requests import expire_due
from journeyman.records.confirmation import Confirmation, ConfirmationId
from journeyman.store.store import Store

NOW = 1_800_000_000.0


def card(number: int, **facts: Any) -> Confirmation:
    id_ = f"{number:032x}"
    given = {
        "id": ConfirmationId(id_),
        "short_id": id_[:6],
        "action": "a",
        "tier": "ask",
        "rule": "",
        "description": "d",
        "details": {},
        "requester": "r",
        "nonce": "",
        "submitted_digest": "",
        "digest": "",
        "created_at": NOW,
        "expires_at": NOW + 30,
    }
    return Confirmation(**{**given, **facts})


def test_only_due_confirmations_expire(tmp_path: Path) -> None:
    kept = [card(1, expires_at=NOW + 30.001), card(2, status="approved"), card(3, status="denied")]
    with Store(database(tmp_path)) as store:
        known = store.confirmations
        with known.writing(NOW) as ledger:
            for one in (*kept, *(card(number) for number in range(10, 520))):
                about = {"digest": "", "expires_at": one.expires_at, "fingerprint": one.id}
                stage = {"approved": "approved", "denied": "closed"}.get(one.status, "pending")
                ledger.record("submitted", "agent:r", one, stage=stage, **about)
        with known.writing(NOW + 29.999) as ledger:
            assert expire_due(ledger) == (0, NOW + 30)
        counts = []
        while not counts or counts[-1][0]:
            with known.writing(NOW + 30) as ledger:
                counts.append(expire_due(ledger))
        assert [count for count, _ in counts] == [500, 10, 0]
        assert counts[-1][1] == NOW + 30.001
        assert [known.find(one.id) for one in kept] == kept
        ended = known.list(status="expired")
        assert len(ended) == 510
        assert {one.settled_at for one in ended} == {NOW + 30}
        assert len(known.audit(limit=1_000, kind="expired")) == 510
