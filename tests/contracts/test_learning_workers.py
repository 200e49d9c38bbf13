"""Learning with worker processes, on SQLite and on a real PostgreSQL."""

from pathlib import Path

import pytest
from tests.conversations import stock_keeping

from journeyman import Journeyman
from journeyman.learning import learner
from journeyman.learning.session_judge import VERDICT_RULES
from journeyman.records.report import Progress

SESSIONS = 7


def learned(home: Path, database: str, workers: int) -> tuple[object, ...]:
    """Everything stored about some sessions, and the reported progress."""
    reported: list[Progress] = []
    with Journeyman(home=home, database=database, environ={}, clock=lambda: 1_000.0) as journeyman:
        for number in range(SESSIONS):
            talk = stock_keeping(number, failures=number % 3)
            journeyman.record(talk, source="shed", session_id=f"s{number}", outcome=1.0)
        report = journeyman.learn(workers=workers, progress=reported.append)
        assert report.mined == SESSIONS
        store = journeyman._store
        verdicts = store.verdicts.known(VERDICT_RULES)
        rows = store.episodes.rows()
        keys = [(one.words, one.call_words, one.vector, one.call_vector) for one in rows]
        assert report.examples
        assert len(verdicts) == SESSIONS
        return (
            verdicts,
            list(store.episodes.by_row([one.row for one in rows]).values()),
            keys,
            reported,
        )


def test_two_workers_learn_the_same_as_one_process(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "_WORTH_WORKERS", 0)
    monkeypatch.setattr(learner, "_BATCH_SESSIONS", 2)
    alone = learned(tmp_path / "alone", f"sqlite:///{tmp_path}/alone.db", 1)
    *together, reported = learned(tmp_path / "together", database_url, 2)
    assert together == list(alone[:-1])
    assert [one.done for one in reported] == [0, 2, 4, 6, 7]
    assert {one.total for one in reported} == {SESSIONS}
    assert reported[-1].share == 1.0
    assert reported == alone[-1]
