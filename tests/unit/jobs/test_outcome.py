"""What became of a run."""

from tests.tables import table

from journeyman.agent.turn import Stop
from journeyman.jobs.outcome import (
    ADMITTED,
    NO_REASON,
    NOT_ALONE,
    NOTHING_SAID,
    Finished,
    Outcome,
    outcome_of,
)


def done(answer: str, finished: Finished | None = None) -> Outcome:
    return outcome_of(stop="done", answer=answer, note="", finished=finished)


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
        ("[SILENT] a [SILENT]", "a"),
        ("```\n[SILENT]\n```\nOne mail.", "One mail."),
        ("One mail.\n```\n[SILENT]\n```", "One mail."),
        ("[SILENT]\n```\ncode\n```", "```\ncode\n```"),
        ("[SILENT]: one mail", "one mail"),
    ],
    ids=ascii,
)
def test_content_beside_the_mark_is_delivered_without_it(answer: str, told: str) -> None:
    assert done(answer) == Outcome(status="ok", remarks=(NOT_ALONE,), answer=told)


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
    assert found.reason == ADMITTED
    assert done("I was unable to complete the task.\n[SILENT]").status == "failed"


@table(
    "answer",
    [
        "I was unable to complete the task.",
        "Unable to run the job.",
        "I had to give up.",
        "I don't have the tools.",
        "As an AI, I can't browse.",
        "The script failed with exit code 1.",
        "The job could not be completed.",
        "The report could not be made.",
        "Task failed: the disk is full.",
        "Error: connection refused",
        "Error executing script: exit code 1",
        "Traceback (most recent call last):",
    ],
)
def test_answers_that_admit_a_failure(answer: str) -> None:
    assert done(answer).status == "failed"
    assert done(f"## **{answer}**").status == "failed"
    assert done(f"Unfortunately, {answer}").status == "failed"


@table(
    "answer",
    [
        "Last night 3 of 210 tests failed.",
        "The script failed for 2 of 300 records, which are listed in rejects.csv.",
        "The job failed twice this month (3rd and 9th). Uptime 99.2 %.",
        "I could not run the script at first; the second attempt went well.",
        "I was unable to complete step 3 (no browser), everything else is done.",
        "I can't read the note on page 2, but the sum is clear.",
        "Status: failed over to db-2 at 03:00, replication is healthy again.",
        "Traceback (most recent call last) was seen 4 times in app.log.",
        "Error: none today.",
        "Failed logins: 4.",
        "> Error: disk full\n\nKim wrote this in the ticket.",
        "All is well.\n```\nError: old\n```",
    ],
)
def test_an_answer_that_only_speaks_of_failures_is_fine(answer: str) -> None:
    assert done(answer).status == "ok"


class TestFinish:
    """What the agent says with its tool."""

    DONE = Finished(status="done", summary="Two disks are full.")

    def test_done_goes_before_what_the_words_seem_to_say(self) -> None:
        answer = "I could not run the first query. The second shows that two disks are full."
        assert done(answer, self.DONE) == Outcome(status="ok", answer=answer)

    @table("answer", ["", "Done.", "Finished!"])
    def test_the_summary_is_delivered_where_it_says_more(self, answer: str) -> None:
        assert done(answer, self.DONE) == Outcome(status="ok", answer="Two disks are full.")

    def test_a_model_that_says_nothing_after_it_is_no_failure(self) -> None:
        found = outcome_of(stop="empty", answer="", note="empty", finished=self.DONE)
        assert found == Outcome(status="ok", answer="Two disks are full.")

    def test_failed_has_its_reason(self) -> None:
        failed = Finished(status="failed", summary="df is not there")
        assert done("All is well.", failed) == Outcome(
            status="failed", reason="df is not there", answer="All is well."
        )
        nothing = Finished(status="failed", summary="")
        assert done("", nothing) == Outcome(status="failed", reason=NO_REASON)

    def test_nothing_to_do_is_silence(self) -> None:
        nothing = Finished(status="nothing_to_do", summary="No new mail.")
        found = done("There was no new mail.", nothing)
        assert (found.status, found.reason) == ("silent", "No new mail.")

    def test_the_marks_still_count(self) -> None:
        assert done("[SILENT]", self.DONE).status == "silent"
        assert done("[SCRIPT_FAILED]: no disk", self.DONE).status == "failed"

    @table("stop", ["time", "tokens", "interrupted", "model_failed"])
    def test_a_turn_that_did_not_end_by_itself_is_not_done(self, stop: Stop) -> None:
        found = outcome_of(stop=stop, answer="", note="", finished=self.DONE)
        assert found.status not in ("ok", "silent")


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


def test_a_model_that_opens_fences_again_and_again_holds_nothing_up() -> None:
    assert done("```x\n" * 20_000).status == "ok"
