"""The report on hosts: what it counts."""

import time
from pathlib import Path

import pytest

from journeyman import Journeyman
from journeyman.plugin.report import report
from journeyman.records.host import EventKind, HostEvent


def test_tokens_are_divided_by_the_sessions_that_got_them(tmp_path: Path) -> None:
    added: list[tuple[str, EventKind, int]]
    added = [("a", "opening", 300), ("a", "hint", 100), ("b", "opening", 200), ("c", "opening", 0)]
    failure = "1 codex Stop RuntimeError: sk-proj-" + "Zq7Lw2Xr9" * 5
    (tmp_path / "hook-failures.log").write_text(failure)
    with Journeyman(home=tmp_path) as journeyman:
        for session, kind, tokens in added:
            journeyman.host_sessions.add_event(
                HostEvent(
                    at=time.time(),
                    host="codex",
                    session_id=session,
                    kind=kind,
                    outcome="warm" if tokens else "cold",
                    ms=4.0,
                    tokens=tokens,
                )
            )
        (codex,) = report(journeyman)
    assert codex.sessions == 0  # none is imported yet
    assert codex.tokens_added == 600
    assert codex.tokens_per_warm_session == pytest.approx(300)
    assert codex.last_failure.endswith("Stop: RuntimeError: [hidden: 53 characters]")
