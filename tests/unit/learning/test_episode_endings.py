"""How episodes end, and which sessions may teach."""

import json
from typing import get_args

from tests.tables import table

from journeyman.learning.episodes import (
    NOT_LEARNED_REASONS,
    Reason,
    ended_in_error,
    ending_of,
    why_not_learned,
)
from journeyman.learning.observations import ServingCall
from journeyman.learning.requests import UserRequest
from journeyman.records import Call, Session, SessionId, Verdict

OK = Verdict(status="ok", rule="r")
FAILED = Verdict(status="failed", rule="r")
INVALID = Verdict(status="invalid", rule="r")
UNKNOWN = Verdict(status="unknown", rule="r")
NO_MATCH = Verdict(status="failed", rule="r", kind="no_match")
REFUSED = Verdict(status="refused", rule="r", by="person")


def session(outcome=None, end_reason=""):
    return Session(id=SessionId("s"), source="test", outcome=outcome, end_reason=end_reason)


def serving(verdict, tool="look", **arguments):
    return ServingCall(
        call=Call(id="c", tool=tool, arguments=json.dumps(arguments)),
        skill=tool,
        request=UserRequest(),
        verdict=verdict,
        is_ok=verdict.status == "ok",
        is_error=verdict.is_error,
        is_safe=True,
        is_example=False,
    )


def ran(command, verdict=OK):
    return serving(verdict, "Bash", command=command)


EDITED = serving(OK, "Edit", file_path="a.py", old_string="a", new_string="b")


def ending(*verdicts, outcome=None, rejected=False, interrupted=False):
    calls = [serving(verdict) for verdict in verdicts]
    return ending_of(session(outcome), calls, rejected=rejected, interrupted=interrupted)


@table(
    ("verdicts", "expected"),
    [
        ((OK,), "well"),
        ((FAILED, OK), "well"),  # up to half of the calls may fail
        ((FAILED, FAILED, OK), "failed"),  # more than half failed
        ((OK, OK, FAILED), "failed"),  # the last call must have worked
        ((OK, INVALID), "failed"),
        ((OK, UNKNOWN), "well"),  # unknown verdicts are ignored
        ((OK, FAILED, UNKNOWN), "failed"),
        ((OK, NO_MATCH), "well"),  # a search without matches is not an error
        ((OK, REFUSED), "rejected"),  # the person did not want the last call
        ((REFUSED, OK), "well"),
        ((UNKNOWN,), "unknown"),
        ((), "unknown"),
    ],
)
def test_calls_decide_without_a_known_outcome(verdicts, expected):
    assert ending(*verdicts) == expected


@table(
    ("calls", "expected"),
    [
        ((EDITED, ran("bin/test", FAILED), ran("ls")), "failed"),
        ((EDITED, ran("make lint", FAILED), ran("git status")), "failed"),
        ((EDITED, ran("npm run build", FAILED), ran("ls"), ran("ls")), "failed"),
        ((ran("bin/test", FAILED), EDITED, ran("ls")), "well"),  # an edit may have mended it
        ((EDITED, ran("bin/test", FAILED), ran("bin/test")), "well"),
        ((EDITED, ran("grep x a.py", FAILED), ran("ls")), "well"),  # not a check
    ],
)
def test_last_check_after_the_last_edit_decides(calls, expected):
    assert ending_of(session(), calls, rejected=False, interrupted=False) == expected
    assert ending_of(session(1.0), calls, rejected=False, interrupted=False) == "well"


@table(("outcome", "expected"), [(1, "well"), (0.99, "well"), (0.98, "failed"), (0, "failed")])
def test_known_outcome_decides(outcome, expected):
    for verdicts in ((OK,), (OK, FAILED), (UNKNOWN,), ()):
        assert ending(*verdicts, outcome=outcome) == expected
        assert ending(*verdicts, outcome=outcome, interrupted=True) == expected


def test_rejections_and_interruptions_take_precedence():
    # An interruption overrides the calls, a rejection overrides everything.
    assert ending(OK, interrupted=True) == "interrupted"
    assert ending(OK, rejected=True) == "rejected"
    assert ending(OK, outcome=1.0, rejected=True) == "rejected"
    assert ending(OK, rejected=True, interrupted=True) == "rejected"


@table(
    ("outcome", "calls", "endings", "reason"),
    [
        (None, 2, ["failed", "well"], ""),
        (None, 0, [], "no calls"),
        (1.0, 0, [], "no calls"),
        (None, 1, ["failed", "rejected", "interrupted", "unknown"], "nothing ended well"),
        (None, 1, [], "nothing ended well"),
        (0.5, 3, ["failed"], "failed"),
        (1.0, 3, ["well"], ""),
        (1.0, 3, ["rejected"], "nothing ended well"),
    ],
)
def test_sessions_that_teach(outcome, calls, endings, reason):
    assert why_not_learned(session(outcome), calls, endings) == reason


@table(
    ("end_reason", "is_error"),
    [
        *((reason, True) for reason in ("error", "agent_error", "failed", "APIError", "crashed")),
        *((reason, False) for reason in ("", "agent_stop", "cron_complete", "interrupted")),
        ("MessageAbortedError", False),  # a person pressed escape
    ],
)
def test_sessions_that_their_recorder_ended_with_an_error(end_reason, is_error):
    assert ended_in_error(session(None, end_reason), None) == is_error
    assert not ended_in_error(session(1.0, end_reason), None)  # a known outcome decides


def test_each_reason_has_a_text():
    assert set(NOT_LEARNED_REASONS) == {*get_args(Reason), "forgotten"} - {""}
