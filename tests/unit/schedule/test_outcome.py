"""What became of a run."""

from tests.tables import table

from journeyman.agent.limits import Stop
from journeyman.schedule.outcome import NO_REASON, NOT_ALONE, NOTHING_SAID, Outcome, outcome_of


def done(answer: str) -> Outcome:
    return outcome_of(stop="done", answer=answer, note="")


def test_an_answer_is_ok_and_delivered() -> None:
    assert done(" 3 new mails.\n") == Outcome(status="ok", answer="3 new mails.")


@table(
    "answer",
    [
        "[SILENT]",
        "  [SILENT]\n",
        "`[SILENT]`",
        "**[SILENT]**",
        '"[SILENT]"',
        "“[SILENT]”",
        "[SILENT].",
        "**[SILENT]**.",
        "```\n[SILENT]\n```",
        "```text\n[SILENT]\n```",
        "\ufeff[SILENT]\u200b",
        "[SILENT]\n[SILENT]",
    ],
    ids=ascii,
)
def test_the_mark_alone_is_silence(answer: str) -> None:
    assert done(answer) == Outcome(status="silent")


@table(
    ("answer", "told"),
    [
        ("[SILENT] Nothing new.", "Nothing new."),
        ("[SILENT]\n\n- 3 new mails", "- 3 new mails"),
        ("Nothing new.\n\n[SILENT]", "Nothing new."),
        ("Nothing new. **[SILENT]**", "Nothing new."),
        ("**[SILENT]** Nothing **new**", "Nothing **new**"),
        ("**[SILENT] Nothing new**", "**Nothing new**"),
        ("**Nothing new [SILENT]**", "**Nothing new**"),
        ("[SILENT] a [SILENT]", "a"),
        ("```\n[SILENT]\n```\nOne mail.", "One mail."),
        ("One mail.\n```\n[SILENT]\n```", "One mail."),
        ("[SILENT]\n```\ncode\n```", "```\ncode\n```"),
        ("[SILENT]: one mail", "one mail"),
    ],
    ids=ascii,
)
def test_content_beside_the_mark_is_delivered_without_it(answer: str, told: str) -> None:
    assert done(answer) == Outcome(status="ok", reason=NOT_ALONE, answer=told)


@table(
    "answer",
    ["The job said [SILENT] four times.", "[silent]", "(silent)", "SILENT", "a\n[SILENT]\nb"],
    ids=ascii,
)
def test_what_is_not_quite_the_mark_is_content(answer: str) -> None:
    assert done(answer) == Outcome(status="ok", answer=answer)


@table(
    ("answer", "reason"),
    [
        ("[SCRIPT_FAILED]: no disk", "no disk"),
        ("[SCRIPT_FAILED] no disk", "no disk"),
        ("[script_failed]: no disk", "no disk"),
        ("[SCRIPT FAILED]: no disk", "no disk"),
        ("**[SCRIPT_FAILED]: no disk**", "no disk"),
        ("**[SCRIPT_FAILED]**: no disk", "no disk"),
        ("`[SCRIPT_FAILED]: no disk`", "no disk"),
        ("[SCRIPT_FAILED: no disk]", "no disk"),
        ("## [SCRIPT_FAILED] — no disk", "no disk"),
        ("[SCRIPT_FAILED]:\n\nno disk\nmore", "no disk"),
        ("Here it is.\n\n  [SCRIPT_FAILED]: no disk\nmore", "no disk"),
        ("```\n[SCRIPT_FAILED]: no disk\n```", "no disk"),
        ("```\nlog\n[SCRIPT_FAILED]: no disk", "no disk"),
        ("[SILENT]\n[SCRIPT_FAILED]: no disk", "no disk"),
        ("[SCRIPT_FAILED]: no disk\n[SILENT]", "no disk"),
        ("[SCRIPT_FAILED]", NO_REASON),
        ("**[SCRIPT_FAILED]:**", NO_REASON),
    ],
    ids=ascii,
)
def test_the_mark_for_a_failed_script(answer: str, reason: str) -> None:
    assert done(answer) == Outcome(status="failed", reason=reason, answer=answer)


@table(
    "answer",
    [
        "The mark [SCRIPT_FAILED]: was in 2 answers.",
        "In the log:\n```\n[SCRIPT_FAILED]: old\n```",
        "Quoted:\n> [SCRIPT_FAILED]: old",
    ],
    ids=["amid", "fenced", "quoted"],
)
def test_the_mark_elsewhere_is_content(answer: str) -> None:
    assert done(answer) == Outcome(status="ok", answer=answer)


def test_an_admitted_failure_is_one_without_the_mark() -> None:
    found = done("I was unable to complete the task, as the disk is full.")
    assert found.status == "failed"
    assert found.answer == "I was unable to complete the task, as the disk is full."
    assert "self.whole" in found.reason
    assert done("I was unable to complete the task.\n[SILENT]").status == "failed"


@table("answer", ["", " \n", "\ufeff"], ids=ascii)
def test_no_answer_is_a_failure(answer: str) -> None:
    assert done(answer) == Outcome(status="failed", reason=NOTHING_SAID)


@table(
    ("stop", "status"),
    [
        ("tokens", "over_budget"),
        ("cost", "over_budget"),
        ("turns", "over_budget"),
        ("time", "timed_out"),
        ("model_failed", "failed"),
        ("context_full", "failed"),
        ("repeating", "failed"),
        ("cut", "failed"),
        ("empty", "failed"),
    ],
)
def test_a_turn_that_did_not_simply_end(stop: Stop, status: str) -> None:
    found = outcome_of(stop=stop, answer=" half of it", note="the note")
    assert (found.status, found.reason, found.answer) == (status, "the note", "half of it")
    assert outcome_of(stop=stop, answer="[SILENT]", note="the note").status == status
    assert outcome_of(stop=stop, answer="", note="").reason.endswith(".")


def test_who_told_it_to_stop_is_not_known() -> None:
    found = outcome_of(stop="interrupted", answer="", note="It was stopped by the user.")
    assert found == Outcome(status="interrupted", reason="It was told to stop.")


@table(
    "answer",
    [f"[SILENT]{' ' * 200_000}x", f"x{'*' * 200_000}[SILENT]", f"[{' ' * 200_000}" * 2],
    ids=["blanks", "marks", "bracket"],
)
def test_a_strange_answer_is_read_all_the_same(answer: str) -> None:
    assert done(answer).status == "ok"
