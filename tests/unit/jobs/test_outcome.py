"""The outcome of a run."""

from tests.tables import table

from journeyman.hosts.runner import RunResult, RunStatus
from journeyman.jobs.outcome import (
    NO_ANSWER,
    NO_REASON,
    SILENT_WITH_TEXT,
    FinishReport,
    Outcome,
    determine_outcome,
)


def ended(
    stop: RunStatus,
    answer: str = "",
    reason: str = "",
    *,
    report: FinishReport | None = None,
    runner: str = "journeyman",
) -> Outcome:
    result = RunResult(runner=runner, status=stop, text=answer, reason=reason)
    return determine_outcome(result, report)


def done(answer: str, report: FinishReport | None = None) -> Outcome:
    return ended("done", answer, report=report)


def test_answer_is_ok() -> None:
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
def test_silent_mark_alone(answer: str) -> None:
    assert done(answer) == Outcome(status="silent")


@table(
    ("answer", "told"),
    [
        ("[SILENT] Nothing new.", "Nothing new."),
        ("[SILENT]\n\n- 3 new mails", "- 3 new mails"),
        ("Nothing new.\n\n[SILENT]", "Nothing new."),
        ("[SILENT] a [SILENT]", "a"),
        ("[SILENT]\n```\ncode\n```", "```\ncode\n```"),
    ],
    ids=ascii,
)
def test_text_next_to_the_silent_mark_is_delivered(answer: str, told: str) -> None:
    assert done(answer) == Outcome(status="ok", remarks=(SILENT_WITH_TEXT,), answer=told)


@table(
    "answer",
    ["The job said [SILENT] four times.", "[silent]", "(silent)", "SILENT", "a\n[SILENT]\nb"],
    ids=ascii,
)
def test_similar_text_is_not_the_silent_mark(answer: str) -> None:
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
def test_script_failed_mark(answer: str, reason: str) -> None:
    assert done(answer) == Outcome(status="failed", reason=reason, answer=answer)


@table(
    "answer",
    [
        "The mark [SCRIPT_FAILED]: was in 2 answers.",
        "Quoted:\n> [SCRIPT_FAILED]: old",
    ],
    ids=["mid_sentence", "quoted"],
)
def test_script_failed_mark_elsewhere_is_text(answer: str) -> None:
    assert done(answer) == Outcome(status="ok", answer=answer)


class TestFinish:
    """The agent's report through the `finish` tool."""

    DONE = FinishReport(status="done", summary="Two disks are full.")

    def test_done_overrides_the_wording_of_the_answer(self) -> None:
        answer = "I could not run the first query. The second shows that two disks are full."
        assert done(answer, self.DONE) == Outcome(status="ok", answer=answer)

    @table("answer", ["", "Done.", "Finished!"])
    def test_summary_replaces_a_trivial_answer(self, answer: str) -> None:
        assert done(answer, self.DONE) == Outcome(status="ok", answer="Two disks are full.")

    def test_empty_answer_after_the_report_is_ok(self) -> None:
        found = ended("empty", reason="empty", report=self.DONE)
        assert found == Outcome(status="ok", answer="Two disks are full.")

    def test_failed_report_has_a_reason(self) -> None:
        failed = FinishReport(status="failed", summary="df is not there")
        assert done("All is well.", failed) == Outcome(
            status="failed", reason="df is not there", answer="All is well."
        )
        nothing = FinishReport(status="failed", summary="")
        assert done("", nothing) == Outcome(status="failed", reason=NO_REASON)

    def test_nothing_to_do_is_silence(self) -> None:
        nothing = FinishReport(status="nothing_to_do", summary="No new mail.")
        found = done("There was no new mail.", nothing)
        assert (found.status, found.reason) == ("silent", "No new mail.")

    def test_marks_still_apply(self) -> None:
        assert done("[SILENT]", self.DONE).status == "silent"
        assert done("[SCRIPT_FAILED]: no disk", self.DONE).status == "failed"

    @table("stop", ["time", "tokens", "interrupted", "model_failed"])
    def test_turn_that_was_cut_off_is_not_done(self, stop: RunStatus) -> None:
        found = ended(stop, report=self.DONE)
        assert found.status not in ("ok", "silent")


@table("answer", ["", " \n", "\ufeff"], ids=ascii)
def test_no_answer_is_a_failure(answer: str) -> None:
    assert done(answer) == Outcome(status="failed", reason=NO_ANSWER)


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
def test_stop_reasons(stop: RunStatus, status: str) -> None:
    found = ended(stop, " half of it", "the note")
    assert (found.status, found.reason, found.answer) == (status, "the note", "half of it")
    assert ended(stop, "[SILENT]", "the note").status == status
    assert ended(stop).reason.endswith(".")


@table(
    ("stop", "said", "told"),
    [
        ("failed", "Segmentation fault", "Codex: Segmentation fault"),
        ("model_failed", "stream lost", "Codex: stream lost"),
        ("not_logged_in", "401. To log in: x", "Codex is not logged in: 401. To log in: x"),
        ("rate_limited", "429.", "Codex has to wait: 429. The job runs when it is next due."),
        ("not_installed", "Install it so.", "Install it so."),
        ("not_logged_in", "", "The run ended: not logged in."),
    ],
)
def test_failures_of_hosts_say_what_to_do(stop: RunStatus, said: str, told: str) -> None:
    found = ended(stop, reason=said, runner="codex")
    assert (found.status, found.reason) == ("failed", told)


def test_interruption_does_not_name_the_user() -> None:
    found = ended("interrupted", reason="It was stopped by the user.")
    assert found == Outcome(status="interrupted", reason="The run was stopped.")


@table(
    "answer",
    [f"[SILENT]{' ' * 200_000}x", f"x{'*' * 200_000}[SILENT]", f"[{' ' * 200_000}" * 2],
    ids=["blanks", "marks", "bracket"],
)
def test_pathological_answers_are_parsed(answer: str) -> None:
    assert done(answer).status == "ok"


def test_extremely_long_answer_is_cut() -> None:
    answer = done("word " * 400_000).answer
    assert len(answer) < 110_000
    assert "1,999,999 characters" in answer
