"""How episodes end, and which sessions may teach."""

from typing import get_args

from tests.tables import table
from tests.turns import Turn, call, failed, mined, refused, user

from journeyman.learning.episodes import NOT_LEARNED_REASONS, Reason
from journeyman.records import MinedSession, Session, SessionId

OK, FAILED = call("look"), failed("look")
UNKNOWN = call("look", result=None)
NO_MATCH = failed("Bash", {"command": "grep x a.py"}, "Exit code 1")
REFUSED = refused("look", {}, "The user doesn't want to proceed with this tool use.")
STOP = user("[Request interrupted by user]", kind="harness")
EDITED = call("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"})


def ran(command, *, fails=False):
    make = failed if fails else call
    return make("Bash", {"command": command}, "Exit code 1\n1 failed" if fails else "fine")


def learned(*turns: Turn, outcome=None, end_reason="") -> MinedSession:
    of = Session(id=SessionId("s1"), source="test", outcome=outcome, end_reason=end_reason)
    return mined(user("Look at the tax"), *turns, session=of)


def ending(*turns: Turn, outcome=None):
    return learned(*turns, outcome=outcome).episodes[0].ending


@table(
    ("turns", "expected"),
    [
        ((OK,), "well"),
        ((FAILED, OK), "well"),  # up to half of the calls may fail
        ((FAILED, FAILED, OK), "failed"),  # more than half failed
        ((OK, OK, FAILED), "failed"),  # the last call must have worked
        ((OK, UNKNOWN), "well"),  # unknown verdicts are ignored
        ((OK, FAILED, UNKNOWN), "failed"),
        ((OK, NO_MATCH), "well"),  # a search without matches is not an error
        ((OK, REFUSED), "rejected"),  # the person did not want the last call
        ((REFUSED, OK), "well"),
        ((UNKNOWN,), "unknown"),
        # An interruption overrides the calls, a rejection overrides everything.
        ((OK, STOP), "interrupted"),
        ((OK, user("No, undo that")), "rejected"),
        ((OK, STOP, user("No, undo that")), "rejected"),
        ((EDITED, ran("bin/test", fails=True), ran("ls")), "failed"),
        ((EDITED, ran("make lint", fails=True), ran("git status")), "failed"),
        ((EDITED, ran("npm run build", fails=True), ran("ls"), ran("ls")), "failed"),
        ((ran("bin/test", fails=True), EDITED, ran("ls")), "well"),  # an edit may have mended it
        ((EDITED, ran("bin/test", fails=True), ran("bin/test")), "well"),
    ],
)
def test_calls_decide_without_a_known_outcome(turns, expected):
    assert ending(*turns) == expected
    assert ending(*turns, outcome=1.0) == ("rejected" if user("No, undo that") in turns else "well")


@table(("outcome", "expected"), [(1, "well"), (0.99, "well"), (0.98, "failed"), (0, "failed")])
def test_known_outcome_decides(outcome, expected):
    for turns in ((OK,), (OK, FAILED), (UNKNOWN,), (OK, STOP)):
        assert ending(*turns, outcome=outcome) == expected


@table(
    ("turns", "outcome", "reason"),
    [
        ((FAILED, user("Go on"), OK), None, ""),
        ((), None, "no calls"),
        ((), 1.0, "no calls"),
        ((FAILED,), None, "nothing ended well"),
        ((OK, FAILED), 0.5, "failed"),
        ((OK,), 1.0, ""),
        ((OK, user("No, undo that")), 1.0, "nothing ended well"),
    ],
)
def test_sessions_that_teach(turns, outcome, reason):
    assert learned(*turns, outcome=outcome).reason == reason


@table(
    ("end_reason", "is_error"),
    [
        *((reason, True) for reason in ("error", "agent_error", "failed", "APIError", "crashed")),
        *((reason, False) for reason in ("", "agent_stop", "cron_complete", "interrupted")),
        ("MessageAbortedError", False),  # a person pressed escape
    ],
)
def test_sessions_that_their_recorder_ended_with_an_error(end_reason, is_error):
    found = learned(OK, end_reason=end_reason)
    assert (found.reason, found.episodes[0].ending) == (
        ("error", "failed") if is_error else ("", "well")
    )
    assert learned(OK, outcome=1.0, end_reason=end_reason).reason == ""  # a known outcome decides


def test_each_reason_has_a_text():
    assert set(NOT_LEARNED_REASONS) == {*get_args(Reason), "forgotten"} - {""}
