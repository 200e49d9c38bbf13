"""Reviews of real turns on a real store and real files; only the model is scripted."""

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agents import agent, tool
from tests.tables import table
from tests.unit.agent.knowledge.changes import replace

from journeyman.agent.dispatch import Question, request_confirmation_tool
from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.review.journal import Journal
from journeyman.agent.review.reviewer import MOST_ITERATIONS, BackgroundReview, Reviewed, Reviewer
from journeyman.agent.tools.knowledge_tools import knowledge_tools
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, worked
from journeyman.agent.turn import Finished
from journeyman.embeddings.embedder import Embedder
from journeyman.gate.decision import ALLOW
from journeyman.models.model import Reply
from journeyman.records import Tokens
from journeyman.records.errors import ModelUnavailable
from journeyman.store.store import Store
from journeyman.testing import ScriptedModel, calls, says

WISH = "Please always answer in German, and keep notes in notes/today.md."
SKILL = """---
name: {name}
description: {description}
---
# Steps
{body}
"""


class Keeper:
    """Takes finished turns and keeps them."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []

    def cancel(self) -> None:
        pass

    def consider(self, finished: Finished) -> None:
        self.finished.append(finished)

    def wait(self, timeout_s: float | None = None) -> bool:
        return timeout_s is None or True


class Place:
    """A store, a folder of knowledge and an agent's tools, some of which leave traces."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.knowledge = Knowledge(folder)
        self.traces: list[str] = []
        self.journal = Journal(store.reviews, self.knowledge, lambda: 9.0)

        def terminal(invocation: Invocation) -> Result:
            self.traces.append("terminal")
            command = invocation.arguments.get("text", "")
            if command.startswith("fail"):
                return failed("command not found", exit_code=127)
            return worked(output=f"ran {command}", exit_code=0)

        def write_file(_: Invocation) -> Result:
            self.traces.append("write_file")
            return worked(bytes_written=1)

        def confirm(_question: Question) -> bool:
            self.traces.append("request_confirmation")
            return True

        self.tools: tuple[Tool, ...] = (
            tool("terminal", terminal),
            tool("write_file", write_file),
            *knowledge_tools(self.knowledge, keep=lambda _write, _invocation: None),
            request_confirmation_tool(confirm),
        )

    def turn(self, *lines: Any, task: str = WISH) -> Finished:
        keeper = Keeper()
        one = agent(self.store, [*lines, says("Done.")], *self.tools, reviewing=keeper)
        turn = one.run_conversation(task)
        assert turn.completed
        self.traces.clear()
        return keeper.finished[0]

    def reviewer(self, model: ScriptedModel) -> Reviewer:
        return Reviewer(
            store=self.store,
            model=model,
            knowledge=self.knowledge,
            tools=self.tools,
            decide=lambda _tool, _arguments: ALLOW,
            similarity=Embedder().similarity,
            find_risky=lambda text: "It pipes into a shell." if "| sh" in text else "",
            prices=lambda _model, _tokens: 0.001,
            clock=lambda: 5.0,
            platform="test",
        )

    def review(self, finished: Finished, *lines: Any) -> Reviewed:
        return self.reviewer(ScriptedModel([*lines, says("Done.")])).review(finished)

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.knowledge.folder)): path.read_text()
            for path in sorted(self.knowledge.folder.rglob("*"))
            if path.is_file() and not path.name.endswith(".lock")
        }


@contextmanager
def new_place(tables: Path, folder: Path) -> Iterator[Place]:
    (folder / "knowledge").mkdir(parents=True)
    shutil.copyfile(tables, folder / "journeyman.db")
    with Store(f"sqlite:///{folder / 'journeyman.db'}") as store:
        yield Place(store, folder / "knowledge")


@pytest.fixture
def place(tables: Path, tmp_path: Path) -> Iterator[Place]:
    with new_place(tables, tmp_path) as place:
        yield place


def remember(content: str, evidence: str = "", target: str = "user", **more: Any) -> Reply:
    arguments = {"action": "add", "target": target, "content": content, **more}
    if evidence:
        arguments["evidence"] = evidence
    return calls(("memory", arguments), first=100)


def result_of(reviewed: Reviewed, number: int = 0) -> dict[str, Any]:
    results = [step for step in reviewed.review.details["steps"] if "result" in step]
    found: dict[str, Any] = json.loads(results[number]["result"])
    return found


class TestFork:
    def test_it_begins_with_the_bytes_of_the_turn(self, place: Place) -> None:
        finished = place.turn(calls(("terminal", {"text": "ls"})))
        model = ScriptedModel([says("Nothing to keep.")])
        place.reviewer(model).review(finished)
        asked = model.requests[0]
        assert asked.messages[:-1] == [
            *_chat(finished),
        ]
        assert asked.tools == list(finished.tools)
        assert asked.messages[-1]["role"] == "system"

    def test_nothing_to_keep_is_a_success(self, place: Place) -> None:
        reviewed = place.review(place.turn(), says("Nothing to keep."))
        assert (reviewed.review.status, reviewed.entries) == ("unchanged", ())
        assert place.files() == {}

    @table("name", ["terminal", "write_file", "request_confirmation"])
    def test_other_tools_are_denied_and_nothing_happens(self, place: Place, name: str) -> None:
        finished = place.turn()
        arguments = (
            {"action": "x", "description": "y"} if name == "request_confirmation" else {"text": "x"}
        )
        reviewed = place.review(
            finished, *[calls((name, arguments), first=50 + n) for n in range(3)]
        )
        assert place.traces == []
        assert place.files() == {}
        for number in range(3):
            assert name in result_of(reviewed, number)["error"]
            assert result_of(reviewed, number)["status"] == "blocked"
        assert reviewed.review.status == "unchanged"

    def test_it_ends_after_so_many_iterations(self, place: Place) -> None:
        finished = place.turn()
        count = iter(range(1000))
        model = ScriptedModel(
            [lambda _m, _t: calls(("skill_view", {"name": f"s{next(count)}"}), first=next(count))],
            repeats=True,
        )
        reviewed = place.reviewer(model).review(finished)
        assert len(model.requests) == reviewed.review.iterations == MOST_ITERATIONS

    def test_usage_is_booked_to_the_session(self, place: Place) -> None:
        finished = place.turn()
        used = Tokens(input_tokens=7, output_tokens=3, cache_read_tokens=90)
        place.review(finished, says("Nothing.", used))
        booked = [one for one in place.store.sessions.usage(finished.session.id) if one.task]
        assert [(one.task, one.input_tokens, one.cache_read_tokens) for one in booked] == [
            ("background_review", 7, 90)
        ]
        assert booked[0].cost_usd == 0.001

    def test_its_messages_are_not_in_the_session(self, place: Place) -> None:
        finished = place.turn()
        before = list(place.store.sessions.messages(finished.session.id))
        place.review(finished, remember("Answers are to be in German.", "answer in German"))
        assert list(place.store.sessions.messages(finished.session.id)) == before

    def test_what_the_turn_wrote_itself_is_not_reported_again(self, place: Place) -> None:
        finished = place.turn(remember("Notes go into notes/today.md.", target="memory"))
        reviewed = place.review(finished, says("Nothing to keep."))
        assert (reviewed.review.status, reviewed.entries) == ("unchanged", ())

    def test_a_model_that_fails_is_a_failed_review(self, place: Place) -> None:
        reviewed = place.review(place.turn(), ModelUnavailable("no answer"))
        assert (reviewed.review.status, reviewed.review.error) == ("failed", "no answer")

    def test_a_cancelled_review_says_so(self, place: Place) -> None:
        reviewer = place.reviewer(ScriptedModel([says("x")]))
        assert reviewer.review(place.turn(), lambda: True).review.status == "cancelled"


def _chat(finished: Finished) -> list[Any]:
    from journeyman.records.message import openai_messages

    return openai_messages(finished.messages)


class TestWriting:
    def test_the_users_words_are_evidence(self, place: Place) -> None:
        reviewed = place.review(
            place.turn(), remember("The user wants answers in German.", "always answer in German")
        )
        assert reviewed.review.status == "changed"
        assert place.knowledge.memory.entries("user") == ("The user wants answers in German.",)
        entry = reviewed.entries[0]
        assert entry.evidence == "always answer in German"
        origin = entry.provenance
        assert (origin.origin, origin.platform, origin.model) == (
            *("background_review", "test", "scripted"),
        )
        assert (origin.session, origin.tool_call) == (reviewed.review.session, "call_100")
        assert origin.context == f"review {reviewed.review.id}"

    def test_a_call_that_worked_is_evidence(self, place: Place) -> None:
        finished = place.turn(calls(("terminal", {"text": "make check"}), first=1))
        reviewed = place.review(
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
            *("no_evidence", "not_said", "failed_call", "too_short", "unrelated"),
            *("unseen_path", "unseen_number", "giving_up"),
        ],
    )
    def test_what_the_session_does_not_show_is_refused(
        self, place: Place, content: str, evidence: str, why: str
    ) -> None:
        finished = place.turn(
            calls(("terminal", {"text": "run the command"}), first=1),
            calls(("terminal", {"text": "fail"}), first=2),
        )
        reviewed = place.review(finished, remember(content, evidence))
        assert reviewed.review.status == "unchanged"
        assert place.files() == {}
        assert why in json.dumps(result_of(reviewed), ensure_ascii=False)

    def test_what_is_there_already_is_not_written_again(self, place: Place) -> None:
        finished = place.turn(remember("The user wants answers in German always."))
        reviewed = place.review(
            finished, remember("The user wants answers always in German.", "answer in German")
        )
        assert reviewed.entries == ()
        assert "there already" in result_of(reviewed)["error"]

    def test_only_a_few_writes_in_one_review(self, place: Place) -> None:
        finished = place.turn()
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
        reviewed = place.reviewer(ScriptedModel([*lines, says("Done.")])).review(finished)
        assert len(reviewed.entries) == 5

    def test_removing_is_for_people(self, place: Place) -> None:
        finished = place.turn(remember("Notes go into notes/today.md."))
        gone = calls(
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
        reviewed = place.review(finished, gone)
        assert "a person takes away" in result_of(reviewed)["error"]
        assert place.knowledge.memory.entries("user") == ("Notes go into notes/today.md.",)


def skill(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return ("skill_manage", {"name": name, "evidence": "call_1", **arguments})


BODY = "\n".join(
    f"{number}. Run the checks, step {letter}."
    for number, letter in enumerate("abcdefghijklmnopqrstuvwxyzabcd", start=1)
)


class TestSkills:
    def made(self, place: Place) -> Finished:
        content = SKILL.format(name="checks", description="How to run the checks.", body=BODY)
        return place.turn(
            calls(
                ("skill_manage", {"action": "create", "name": "checks", "content": content}),
                first=90,
            ),
            calls(("terminal", {"text": "make check --all"}), first=1),
        )

    def test_a_way_that_worked_becomes_a_skill(self, place: Place) -> None:
        finished = place.turn(calls(("terminal", {"text": "make check"}), first=1))
        content = SKILL.format(
            name="checks", description="How to check.", body="Run `make check` and look."
        )
        reviewed = place.review(
            finished, calls(skill("checks", action="create", content=content), first=100)
        )
        assert reviewed.review.status == "changed", result_of(reviewed)
        assert "skills/checks/SKILL.md" in place.files()

    def test_work_that_ended_badly_is_no_way(self, place: Place) -> None:
        finished = place.turn(
            calls(("terminal", {"text": "make check"}), first=1),
            calls(("terminal", {"text": "fail"}), first=2),
        )
        content = SKILL.format(
            name="checks", description="How to check.", body="Run `make check` and look."
        )
        reviewed = place.review(
            finished, calls(skill("checks", action="create", content=content), first=100)
        )
        assert "did not end with calls that worked" in result_of(reviewed)["error"]
        assert place.files() == {}

    def test_reading_comes_before_writing(self, place: Place) -> None:
        finished = self.made(place)
        patch = skill(
            "checks",
            action="patch",
            old_string="1. Run the checks, step a.",
            new_string="1. Run the checks with `make check --all`.",
        )
        before = place.files()
        blind = place.review(finished, calls(patch, first=100))
        assert "skill_view" in result_of(blind)["error"]
        assert place.files() == before
        seen = place.review(
            finished, calls(("skill_view", {"name": "checks"}), first=100), calls(patch, first=101)
        )
        assert seen.review.status == "changed", result_of(seen, 1)

    def test_only_a_part_of_a_skill_may_change(self, place: Place) -> None:
        finished = self.made(place)
        content = SKILL.format(
            name="checks", description="How to run the checks.", body="Run `make check --all`."
        )
        before = place.files()
        reviewed = place.review(
            finished,
            calls(("skill_view", {"name": "checks"}), first=100),
            calls(skill("checks", action="edit", content=content), first=101),
        )
        assert "may change. Patch" in result_of(reviewed, 1)["error"]
        assert place.files() == before

    def test_small_steps_do_not_add_up_to_a_large_one(self, place: Place) -> None:
        finished = self.made(place)
        patches = [
            calls(
                skill(
                    "checks",
                    action="patch",
                    old_string="\n".join(BODY.splitlines()[start : start + 4]),
                    new_string="Run `make check --all`, checks.\n" * (start // 4 + 1),
                ),
                first=110 + start,
            )
            for start in (0, 4, 8, 12)
        ]
        reviewed = place.review(
            finished, calls(("skill_view", {"name": "checks"}), first=100), *patches
        )
        changed = len(reviewed.entries)
        assert 1 <= changed < 4

    def test_a_skill_like_another_is_refused(self, place: Place) -> None:
        finished = self.made(place)
        content = SKILL.format(
            name="checks-again",
            description="How to run the checks.",
            body="Run `make check --all`.",
        )
        reviewed = place.review(
            finished, calls(skill("checks-again", action="create", content=content), first=100)
        )
        assert "there already" in result_of(reviewed)["error"]

    def test_deleting_is_for_people(self, place: Place) -> None:
        finished = self.made(place)
        before = place.files()
        reviewed = place.review(
            finished,
            calls(("skill_view", {"name": "checks"}), first=100),
            calls(skill("checks", action="delete"), first=101),
        )
        assert "a person takes away" in result_of(reviewed, 1)["error"]
        assert place.files() == before


class TestUndo:
    def test_a_review_is_undone_as_a_whole(self, place: Place) -> None:
        finished = place.turn()
        before = place.files()
        reviewed = place.review(
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
        undone = place.journal.undo(reviewed.review.id)
        assert (len(undone.entries), undone.kept) == (2, ())
        assert {name: text for name, text in place.files().items() if text} == before
        assert place.journal.undo(reviewed.review.id).entries == ()

    def test_one_write_is_undone_alone(self, place: Place) -> None:
        reviewed = place.review(
            place.turn(), remember("The user wants answers in German.", "always answer in German")
        )
        undone = place.journal.undo(reviewed.entries[0].id[:6])
        assert [one.id for one in undone.entries] == [reviewed.entries[0].id]

    def test_what_changed_since_stays(self, place: Place) -> None:
        reviewed = place.review(
            place.turn(), remember("The user wants answers in German.", "always answer in German")
        )
        memory = place.knowledge.memory
        place.knowledge.change(
            "user", lambda: memory.plan("user", replace("German", "The user wants French now."))
        )
        undone = place.journal.undo(reviewed.review.id)
        assert undone.entries == ()
        assert "German" in undone.kept[0][0].write.summary
        assert place.knowledge.memory.entries("user") == ("The user wants French now.",)


class TestBackground:
    def background(
        self, place: Place, model: Any, **parts: Any
    ) -> tuple[BackgroundReview, list[str]]:
        told: list[str] = []
        given = {"every_turns": 1, "every_calls": 100, "tell": told.append} | parts
        return BackgroundReview(place.reviewer(model), **given), told

    def test_one_line_says_what_changed(self, place: Place) -> None:
        lines = [remember("The user wants answers in German.", "answer in German"), says("Done.")]
        background, told = self.background(place, ScriptedModel(lines))
        background.consider(place.turn())
        assert background.wait(20)
        assert len(told) == 1
        assert "German" in told[0]
        assert "journeyman review undo" in told[0]

    def test_nothing_is_said_where_nothing_changed(self, place: Place) -> None:
        background, told = self.background(place, ScriptedModel([says("Nothing.")]))
        background.consider(place.turn())
        assert background.wait(20)
        assert told == []
        assert place.store.reviews.list()[0].status == "unchanged"

    @table(("every_turns", "every_calls", "expected"), [(2, 100, 1), (100, 3, 1), (100, 100, 0)])
    def test_it_comes_every_so_many_turns_or_calls(
        self, place: Place, every_turns: int, every_calls: int, expected: int
    ) -> None:
        model = ScriptedModel([says("Nothing.")], repeats=True)
        background, _ = self.background(
            place, model, every_turns=every_turns, every_calls=every_calls
        )
        before = len(place.store.reviews.list())
        for number in range(2):
            two = calls(("terminal", {"text": "a"}), ("terminal", {"text": "b"}), first=number * 9)
            background.consider(place.turn(two))
        assert background.wait(20)
        assert len(place.store.reviews.list()) - before == expected

    def test_a_failure_is_told_once_and_breaks_nothing(
        self, place: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        model = ScriptedModel([ModelUnavailable("no answer")], repeats=True)
        background, told = self.background(place, model)
        for _ in range(3):
            background.consider(place.turn())
            assert background.wait(20)
        assert told == ["The review failed: no answer"]
        assert "no answer" in caplog.text

    def test_a_review_that_breaks_down_is_told_too(self, place: Place) -> None:
        def broken(_messages: Any, _tools: Any) -> Reply:
            raise RuntimeError("oops")

        background, told = self.background(place, ScriptedModel([broken]))
        background.consider(place.turn())
        assert background.wait(20)
        assert told == ["The review failed: oops"]

    def test_a_new_turn_cancels_a_running_review(self, place: Place) -> None:
        began, go_on = threading.Event(), threading.Event()

        def slow(_messages: Any, _tools: Any) -> Reply:
            began.set()
            assert go_on.wait(20)
            return remember("The user wants answers in German.", "answer in German")

        background, told = self.background(place, ScriptedModel([slow, says("Done.")]))
        one = agent(place.store, [says("One."), says("Two.")], *place.tools, reviewing=background)
        one.run_conversation(WISH)
        assert began.wait(20)
        threading.Timer(0.2, go_on.set).start()
        one.run_conversation("Next.")
        background.cancel()
        assert place.files() == {}
        assert told == []
        statuses = [one.status for one in place.store.reviews.list()]
        assert "cancelled" in statuses
