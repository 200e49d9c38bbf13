"""Which sessions may teach."""

from tests.tables import table
from tests.turns import agent, call, failed, judged, messages, user

from journeyman.records import Session, SessionId
from journeyman.templates.mining.gate import why_not


def verdict(*turns, outcome=None, end_reason="", finish_reason=""):
    session = Session(id=SessionId("s"), source="test", outcome=outcome, end_reason=end_reason)
    said = messages(*turns)
    if finish_reason:
        last = said[-1]
        said[-1] = type(last)(
            key=last.key,
            position=last.position,
            role=last.role,
            text=last.text,
            finish_reason=finish_reason,
        )
    return why_not(session, said, judged(session, said))


GOOD = user("Do it"), call("tool"), agent("It is done.")


def test_who_may_teach():
    # A session that ended in order may teach.
    assert verdict(*GOOD) == ""

    # Without calls there is nothing to teach.
    assert verdict(user("Hello"), agent("Hello!")) == "no calls"

    # Half of the calls may fail and no more.
    ended = agent("Done.")
    assert verdict(call("a"), failed("b"), ended) == ""
    assert verdict(call("a"), failed("b"), failed("b"), ended) == "errors"

    # Harness messages after the end change nothing.
    assert verdict(*GOOD, user("<system-reminder>x</system-reminder>", kind="harness")) == ""


@table(("outcome", "reason"), [(1.0, ""), (0.99, ""), (0.98, "failed"), (0, "failed")])
def test_an_outcome_decides(outcome, reason):
    assert verdict(*GOOD, outcome=outcome) == reason
    # Whatever the end looks like: somebody outside has measured it.
    assert verdict(*GOOD[:2], outcome=outcome) == reason


@table(
    "turns",
    [
        GOOD[:2],
        (*GOOD, user("And now the other one")),
        (*GOOD[:2], call("tool", result=None)),
        (*GOOD, user("[Request interrupted by user]", kind="harness")),
        (*GOOD[:2], agent("  ")),
    ],
    ids=["result", "unanswered-user", "open-call", "interrupted", "silence"],
)
def test_the_agent_must_have_the_last_word(turns):
    assert verdict(*turns) == "no orderly end"


@table("finish", ["error", "agent_error", "content_filter"])
def test_a_reply_that_broke_off_is_no_end(finish):
    assert verdict(*GOOD, finish_reason=finish) == "no orderly end"


@table(
    ("end", "reason"),
    [
        ("Submitted", ""),
        ("compression", ""),
        ("agent_error", "no orderly end"),
        ("LimitsExceeded", "no orderly end"),
    ],
)
def test_the_recorders_word_on_the_end_counts(end, reason):
    assert verdict(*GOOD[:2], end_reason=end) == reason
    assert verdict(*GOOD, end_reason=end) == reason
    assert verdict(*GOOD, end_reason="cron_complete") == ""
