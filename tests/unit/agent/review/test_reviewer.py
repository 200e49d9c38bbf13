"""Reviews of real turns on a real store and real files; only the model is scripted."""

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.agents import agent as new_agent
from tests.agents import tool
from tests.tables import table
from tests.unit.agent.knowledge.changes import replace
from tests.waiting import LONGEST_S

from journeyman.agent.dispatch import request_confirmation_tool
from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.review.journal import Journal
from journeyman.agent.review.reviewer import BackgroundReview, Reviewer, ReviewResult
from journeyman.agent.tools.knowledge_tools import knowledge_tools
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, worked
from journeyman.agent.turn import FinishedTurn
from journeyman.gate.decision import ALLOW, ApprovalRequest
from journeyman.models.embedder import Embedder
from journeyman.models.model import Reply
from journeyman.records import Tokens
from journeyman.records.errors import ModelUnavailable
from journeyman.store.store import Store
from journeyman.testing import ScriptedModel, calls, says

TASK = "Please always answer in German, and keep notes in notes/today.md."
SKILL = """---
name: {name}
description: {description}
---
# Steps
{body}
"""


class FinishedTurns:
    """Stands in for the background review and collects finished turns."""

    def __init__(self) -> None:
        self.finished: list[FinishedTurn] = []

    def cancel(self) -> None:
        pass

    def consider(self, finished: FinishedTurn) -> None:
        self.finished.append(finished)

    def wait(self, timeout_s: float | None = None) -> bool:
        return timeout_s is None or True


class Workbench:
    """A store, a knowledge folder and agent tools that record their use in `traces`."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.knowledge = Knowledge(folder)
        self.traces: list[str] = []
        self.journal = Journal(store.reviews, store.facts, self.knowledge, lambda: 9.0)

        def terminal(invocation: Invocation) -> Result:
            self.traces.append("terminal")
            command = invocation.arguments.get("text", "")
            if command.startswith("fail"):
                return failed("command not found", exit_code=127)
            return worked(output=f"ran {command}", exit_code=0)

        def write_file(_: Invocation) -> Result:
            self.traces.append("write_file")
            return worked(bytes_written=1)

        def confirm(_question: ApprovalRequest) -> bool:
            self.traces.append("request_confirmation")
            return True

        self.tools: tuple[Tool, ...] = (
            tool("terminal", terminal),
            tool("write_file", write_file),
            *knowledge_tools(self.knowledge, keep=lambda _write, _invocation: None),
            request_confirmation_tool(confirm),
        )

    def turn(self, *lines: Any, task: str = TASK) -> FinishedTurn:
        recorder = FinishedTurns()
        agent = new_agent(
            self.store, [*lines, says("Done.")], *self.tools, background_review=recorder
        )
        turn = agent.run_conversation(task)
        assert turn.is_done
        self.traces.clear()
        return recorder.finished[0]

    def reviewer(self, model: ScriptedModel) -> Reviewer:
        return Reviewer(
            store=self.store,
            model=model,
            knowledge=self.knowledge,
            tools=self.tools,
            decide=lambda _tool, _arguments: ALLOW,
            similarity=Embedder().similarity,
            find_risk=lambda text: "It pipes into a shell." if "| sh" in text else "",
            prices=lambda _model, _tokens: 0.001,
            clock=lambda: 5.0,
            platform="test",
        )

    def review(self, finished: FinishedTurn, *lines: Any) -> ReviewResult:
        return self.reviewer(ScriptedModel([*lines, says("Done.")])).review(finished)

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.knowledge.folder)): path.read_text()
            for path in sorted(self.knowledge.folder.rglob("*"))
            if path.is_file() and not path.name.endswith(".lock")
        }


@contextmanager
def new_workbench(tables: Path, folder: Path) -> Iterator[Workbench]:
    (folder / "knowledge").mkdir(parents=True)
    shutil.copyfile(tables, folder / "journeyman.db")
    with Store(f"sqlite:///{folder / 'journeyman.db'}") as store:
        yield Workbench(store, folder / "knowledge")


@pytest.fixture
def workbench(tables: Path, tmp_path: Path) -> Iterator[Workbench]:
    with new_workbench(tables, tmp_path) as workbench:
        yield workbench


def remember(content: str, evidence: str = "", target: str = "user", **more: Any) -> Reply:
    arguments = {"action": "add", "target": target, "content": content, **more}
    if evidence:
        arguments["evidence"] = evidence
    return calls(("memory", arguments), first=100)


def result_of(reviewed: ReviewResult, number: int = 0) -> dict[str, Any]:
    results = [step for step in reviewed.review.details["steps"] if "result" in step]
    found: dict[str, Any] = json.loads(results[number]["result"])
    return found


class TestFork:
    def test_review_starts_with_the_exact_messages_of_the_turn(self, workbench: Workbench) -> None:
        finished = workbench.turn(calls(("terminal", {"text": "ls"})))
        model = ScriptedModel([says("Nothing to keep.")])
        workbench.reviewer(model).review(finished)
        asked = model.requests[0]
        assert asked.messages[:-1] == [
            *_chat(finished),
        ]
        assert asked.tools == list(finished.tools)
        assert asked.messages[-1]["role"] == "system"

    def test_review_without_changes_succeeds(self, workbench: Workbench) -> None:
        reviewed = workbench.review(workbench.turn(), says("Nothing to keep."))
        assert (reviewed.review.status, reviewed.entries) == ("unchanged", ())
        assert workbench.files() == {}

    @table("name", ["terminal", "write_file", "request_confirmation"])
    def test_other_tools_are_denied_and_do_not_run(self, workbench: Workbench, name: str) -> None:
        finished = workbench.turn()
        arguments = (
            {"action": "x", "description": "y"} if name == "request_confirmation" else {"text": "x"}
        )
        reviewed = workbench.review(
            finished, *[calls((name, arguments), first=50 + n) for n in range(3)]
        )
        assert workbench.traces == []
        assert workbench.files() == {}
        for number in range(3):
            assert name in result_of(reviewed, number)["error"]
            assert result_of(reviewed, number)["status"] == "blocked"

    def test_usage_is_charged_to_the_session(self, workbench: Workbench) -> None:
        finished = workbench.turn()
        used = Tokens(input_tokens=7, output_tokens=3, cache_read_tokens=90)
        workbench.review(finished, says("Nothing.", used))
        booked = [one for one in workbench.store.sessions.usage(finished.session.id) if one.task]
        assert [(one.task, one.input_tokens, one.cache_read_tokens) for one in booked] == [
            ("background_review", 7, 90)
        ]
        assert booked[0].cost_usd == 0.001

    def test_model_failure_fails_the_review(self, workbench: Workbench) -> None:
        reviewed = workbench.review(workbench.turn(), ModelUnavailable("no answer"))
        assert (reviewed.review.status, reviewed.review.error) == ("failed", "no answer")

    def test_cancelled_review_has_status_cancelled(self, workbench: Workbench) -> None:
        reviewer = workbench.reviewer(ScriptedModel([says("x")]))
        assert reviewer.review(workbench.turn(), lambda: True).review.status == "cancelled"


def _chat(finished: FinishedTurn) -> list[Any]:
    from journeyman.records.message import openai_messages

    return openai_messages(finished.messages)


class TestMemoryWrites:
    def test_quote_from_the_user_is_evidence(self, workbench: Workbench) -> None:
        reviewed = workbench.review(
            workbench.turn(),
            remember("The user wants answers in German.", "always answer in German"),
        )
        assert reviewed.review.status == "changed"
        assert workbench.knowledge.memory.entries("user") == ("The user wants answers in German.",)
        entry = reviewed.entries[0]
        assert entry.evidence == "always answer in German"
        origin = entry.provenance
        assert (origin.origin, origin.platform, origin.model) == (
            *("background_review", "test", "scripted"),
        )
        assert (origin.session, origin.tool_call) == (reviewed.review.session, "call_100")
        assert origin.context == f"review {reviewed.review.id}"

    def test_successful_call_is_evidence(self, workbench: Workbench) -> None:
        finished = workbench.turn(calls(("terminal", {"text": "make check"}), first=1))
        reviewed = workbench.review(
            finished, remember("`make check` runs the checks.", "call_1", target="memory")
        )
        assert reviewed.review.status == "changed"

    @table(
        ("content", "evidence", "why"),
        [
            ("The user wants answers in German.", "", "Say what shows it"),
            ("The user wants answers in German.", "answer in French please", "neither the id"),
            ("The user wants answers in German.", "call_2", "shows nothing"),
            ("The user wants answers in German.", "in", "long enough"),
            ("The garden has roses.", "always answer in German", "nothing to do with"),
            ("German notes are in notes/old.md.", "always answer in German", "notes/old.md"),
            ("Answers in German take 45 seconds.", "always answer in German", "45"),
            ("The command does not work here.", "call_1", "quote the user"),
        ],
        ids=[
            *("no_evidence", "not_quoted", "failed_call", "too_short", "unrelated"),
            *("unseen_path", "unseen_number", "giving_up"),
        ],
    )
    def test_claims_without_evidence_in_the_session_are_refused(
        self, workbench: Workbench, content: str, evidence: str, why: str
    ) -> None:
        finished = workbench.turn(
            calls(("terminal", {"text": "run the command"}), first=1),
            calls(("terminal", {"text": "fail"}), first=2),
        )
        reviewed = workbench.review(finished, remember(content, evidence))
        assert reviewed.review.status == "unchanged"
        assert workbench.files() == {}
        assert why in json.dumps(result_of(reviewed), ensure_ascii=False)

    def test_writes_per_review_are_limited(self, workbench: Workbench) -> None:
        finished = workbench.turn()
        lines = [
            calls(
                (
                    "memory",
                    {
                        "action": "add",
                        "target": "user",
                        "content": f"German{letter * 4} answers.",
                        "evidence": "always answer in German",
                    },
                ),
                first=100 + number,
            )
            for number, letter in enumerate("abcdefg")
        ]
        reviewed = workbench.reviewer(ScriptedModel([*lines, says("Done.")])).review(finished)
        assert len(reviewed.entries) == 5

    def test_review_must_not_remove_entries(self, workbench: Workbench) -> None:
        finished = workbench.turn(remember("Notes go into notes/today.md."))
        removal = calls(
            (
                "memory",
                {
                    "action": "remove",
                    "target": "user",
                    "old_text": "Notes go",
                    "evidence": "always answer in German",
                },
            ),
            first=100,
        )
        reviewed = workbench.review(finished, removal)
        assert "only a person may remove" in result_of(reviewed)["error"]
        assert workbench.knowledge.memory.entries("user") == ("Notes go into notes/today.md.",)


def skill(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return ("skill_manage", {"name": name, "evidence": "call_1", **arguments})


BODY = "\n".join(
    f"{number}. Run the checks, step {letter}."
    for number, letter in enumerate("abcdefghijklmnopqrstuvwxyzabcd", start=1)
)


class TestSkills:
    def turn_with_skill(self, workbench: Workbench) -> FinishedTurn:
        content = SKILL.format(name="checks", description="How to run the checks.", body=BODY)
        return workbench.turn(
            calls(
                ("skill_manage", {"action": "create", "name": "checks", "content": content}),
                first=90,
            ),
            calls(("terminal", {"text": "make check --all"}), first=1),
        )

    def test_successful_procedure_becomes_a_skill(self, workbench: Workbench) -> None:
        finished = workbench.turn(calls(("terminal", {"text": "make check"}), first=1))
        content = SKILL.format(
            name="checks", description="How to check.", body="Run `make check` and look."
        )
        reviewed = workbench.review(
            finished, calls(skill("checks", action="create", content=content), first=100)
        )
        assert reviewed.review.status == "changed", result_of(reviewed)
        assert "skills/checks/SKILL.md" in workbench.files()

    def test_failed_work_does_not_become_a_skill(self, workbench: Workbench) -> None:
        finished = workbench.turn(
            calls(("terminal", {"text": "make check"}), first=1),
            calls(("terminal", {"text": "fail"}), first=2),
        )
        content = SKILL.format(
            name="checks", description="How to check.", body="Run `make check` and look."
        )
        reviewed = workbench.review(
            finished, calls(skill("checks", action="create", content=content), first=100)
        )
        assert "did not end with calls that worked" in result_of(reviewed)["error"]
        assert workbench.files() == {}

    def test_skill_must_be_read_before_it_is_patched(self, workbench: Workbench) -> None:
        finished = self.turn_with_skill(workbench)
        patch = skill(
            "checks",
            action="patch",
            old_string="1. Run the checks, step a.",
            new_string="1. Run the checks with `make check --all`.",
        )
        before = workbench.files()
        blind = workbench.review(finished, calls(patch, first=100))
        assert "skill_view" in result_of(blind)["error"]
        assert workbench.files() == before
        seen = workbench.review(
            finished, calls(("skill_view", {"name": "checks"}), first=100), calls(patch, first=101)
        )
        assert seen.review.status == "changed", result_of(seen, 1)


class TestUndo:
    def test_undo_of_a_review_reverts_all_its_writes(self, workbench: Workbench) -> None:
        finished = workbench.turn()
        before = workbench.files()
        reviewed = workbench.review(
            finished,
            remember("The user wants answers in German.", "always answer in German"),
            calls(
                (
                    "memory",
                    {
                        "action": "add",
                        "target": "memory",
                        "content": "Notes are kept in notes/today.md.",
                        "evidence": "keep notes in notes/today.md",
                    },
                ),
                first=101,
            ),
        )
        assert len(reviewed.entries) == 2
        undone = workbench.journal.undo(reviewed.review.id)
        assert (len(undone.entries), undone.kept) == (2, ())
        assert {name: text for name, text in workbench.files().items() if text} == before
        assert workbench.journal.undo(reviewed.review.id).entries == ()

    def test_entry_changed_since_is_kept(self, workbench: Workbench) -> None:
        reviewed = workbench.review(
            workbench.turn(),
            remember("The user wants answers in German.", "always answer in German"),
        )
        memory = workbench.knowledge.memory
        workbench.knowledge.change(
            "user", lambda: memory.plan("user", **replace("German", "The user wants French now."))
        )
        undone = workbench.journal.undo(reviewed.review.id)
        assert undone.entries == ()
        assert "German" in undone.kept[0][0]
        assert workbench.knowledge.memory.entries("user") == ("The user wants French now.",)


class TestBackground:
    def background(
        self, workbench: Workbench, model: Any, **parts: Any
    ) -> tuple[BackgroundReview, list[str]]:
        notices: list[str] = []
        options = {"every_turns": 1, "every_calls": 100, "notify": notices.append} | parts
        return BackgroundReview(workbench.reviewer(model), **options), notices

    def test_change_is_reported_in_one_line(self, workbench: Workbench) -> None:
        lines = [remember("The user wants answers in German.", "answer in German"), says("Done.")]
        background, notices = self.background(workbench, ScriptedModel(lines))
        background.consider(workbench.turn())
        assert background.wait(LONGEST_S)
        assert len(notices) == 1
        assert "German" in notices[0]
        assert "journeyman review undo" in notices[0]

    @table(("every_turns", "every_calls", "expected"), [(2, 100, 1), (100, 3, 1), (100, 100, 0)])
    def test_review_runs_after_enough_turns_or_calls(
        self, workbench: Workbench, every_turns: int, every_calls: int, expected: int
    ) -> None:
        model = ScriptedModel([says("Nothing.")], repeats=True)
        background, _ = self.background(
            workbench, model, every_turns=every_turns, every_calls=every_calls
        )
        before = len(workbench.store.reviews.list())
        for number in range(2):
            two = calls(("terminal", {"text": "a"}), ("terminal", {"text": "b"}), first=number * 9)
            background.consider(workbench.turn(two))
        assert background.wait(LONGEST_S)
        assert len(workbench.store.reviews.list()) - before == expected

    def test_new_turn_cancels_a_running_review(self, workbench: Workbench) -> None:
        started, release = threading.Event(), threading.Event()

        def slow(_messages: Any, _tools: Any) -> Reply:
            started.set()
            assert release.wait(LONGEST_S)
            return remember("The user wants answers in German.", "answer in German")

        background, notices = self.background(workbench, ScriptedModel([slow, says("Done.")]))
        agent = new_agent(
            workbench.store,
            [says("One."), says("Two.")],
            *workbench.tools,
            background_review=background,
        )
        agent.run_conversation(TASK)
        assert started.wait(LONGEST_S)
        threading.Timer(0.2, release.set).start()
        agent.run_conversation("Next.")
        background.cancel()
        assert workbench.files() == {}
        assert notices == []
        statuses = [one.status for one in workbench.store.reviews.list()]
        assert "cancelled" in statuses


class TestOutcome:
    def test_a_review_that_was_cut_off_or_said_nothing_usable_is_incomplete(
        self, workbench: Workbench
    ) -> None:
        finished = workbench.turn()
        cases: dict[str, tuple[Reply, str, str]] = {
            "nothing": (says("Nothing to keep."), "unchanged", ""),
            "cut": (
                msgspec.structs.replace(says("I think"), finish_reason="length"),
                "incomplete",
                "cut off by its length limit",
            ),
            "empty": (says(""), "incomplete", "empty reply"),
        }
        misses = []
        for name, (reply, status, problem) in cases.items():
            review = workbench.reviewer(ScriptedModel([reply])).review(finished).review
            is_as_expected = review.status == status and bool(problem) == bool(review.error)
            if not is_as_expected or problem not in review.error:
                misses.append((name, review.status, review.error))
        assert misses == []


def test_memory_and_the_user_profile_have_switches(workbench: Workbench) -> None:
    finished = workbench.turn(task="Please always answer in German.")
    line = remember("The user wants answers in German.", "always answer in German")
    for left_alone, status in ((("user",), "unchanged"), (("memory",), "changed")):
        reviewer = workbench.reviewer(ScriptedModel([line, says("Done.")]))
        reviewer.left_alone = left_alone
        assert reviewer.review(finished).review.status == status
