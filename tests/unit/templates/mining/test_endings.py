"""Which sessions and episodes may teach."""

from tests.tables import table

from journeyman.records import Session, SessionId, Verdict
from journeyman.templates.mining.episodes import WHY_NOT, ending_of, why_not

OK = Verdict(status="ok", rule="r")
FAILED = Verdict(status="failed", rule="r")
INVALID = Verdict(status="invalid", rule="r")
UNKNOWN = Verdict(status="unknown", rule="r")
NO_MATCH = Verdict(status="failed", rule="r", kind="no_match")


def session(outcome=None, end_reason=""):
    return Session(id=SessionId("s"), source="test", outcome=outcome, end_reason=end_reason)


def ending(*verdicts, outcome=None, rejected=False, interrupted=False):
    of = session(outcome)
    return ending_of(of, verdicts, rejected=rejected, interrupted=interrupted)


@table(
    ("verdicts", "expected"),
    [
        ((OK,), "well"),
        ((FAILED, OK), "well"),  # half of the calls may fail
        ((FAILED, FAILED, OK), "failed"),  # and no more
        ((OK, OK, FAILED), "failed"),  # the last one must have worked
        ((OK, INVALID), "failed"),
        ((OK, UNKNOWN), "well"),  # what nobody knows does not count
        ((OK, FAILED, UNKNOWN), "failed"),
        ((OK, NO_MATCH), "well"),  # a search that found nothing is no error
        ((UNKNOWN,), "unknown"),
        ((), "unknown"),
    ],
)
def test_without_an_outcome_the_calls_tell(verdicts, expected):
    assert ending(*verdicts) == expected


@table(("outcome", "expected"), [(1, "well"), (0.99, "well"), (0.98, "failed"), (0, "failed")])
def test_a_known_outcome_decides(outcome, expected):
    for verdicts in ((OK,), (OK, FAILED), (UNKNOWN,), ()):
        assert ending(*verdicts, outcome=outcome) == expected
        assert ending(*verdicts, outcome=outcome, interrupted=True) == expected


def test_what_a_person_said_decides():
    # An interruption comes before the calls, a rejection before everything.
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
def test_who_may_teach(outcome, calls, endings, reason):
    assert why_not(session(outcome), calls, endings) == reason
    # How the session ended does not matter.
    assert why_not(session(outcome, "agent_error"), calls, endings) == reason


def test_each_reason_has_words():
    assert set(WHY_NOT) == {"no calls", "failed", "nothing ended well", "forgotten"}
