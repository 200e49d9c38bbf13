"""The openings of hosts' sessions: decided once, kept, and never shown twice."""

import json
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.host_service import (
    FOUND,
    GONE,
    MOVED,
    OTHER_TASK,
    REMEDY,
    START,
    TASK,
    TOLD,
    Desk,
    Experience,
    conversation,
    opened,
)
from tests.waiting import LONGEST_S, deadline

from journeyman.experience.moments import MOMENTS
from journeyman.models.embedder import Embedder
from journeyman.plugin.opening_parts import explain_session
from journeyman.plugin.service import Exchange
from journeyman.records.errors import ServiceUnavailable, StoreUnavailable, WrongInput

SMALL = '[opening]\nsmall_models = ["small"]\n'
LOOKUP = "Look up how much flour the depot has"
STOCK: dict[str, Any] = {
    "name": "query_stock",
    "input_schema": {"type": "object", "properties": {"depot": {"type": "string"}}},
}
"""A tool that no model knows by training."""

LONGEST_START = 300
"""The tokens of a start, its marks included."""


def tokens(text: str) -> int:
    return Embedder().count_tokens(text)


def record_lookups(desk: Desk, folder: str) -> None:
    """Record and learn sessions that used the tool, in one project."""
    function = {"name": "query_stock", "arguments": json.dumps({"depot": "north"})}
    call = {"id": "c", "type": "function", "function": function}
    for number in range(3):
        messages = [
            {"role": "user", "content": LOOKUP},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": '{"flour": 3}'},
            {"role": "assistant", "content": "Three bags."},
        ]
        desk.journeyman.record(messages, source="mine", session_id=f"look-{number}", cwd=folder)
    desk.journeyman.learn()


def record_of(desk: Desk, session: str, host: str = "hermes") -> Any:
    return desk.journeyman.host_sessions.find(host, session)


class TestDecision:
    def test_an_opening_is_kept_through_restarts_and_learning(
        self, experience: Experience, tmp_path: Path
    ) -> None:
        with opened(experience, tmp_path) as desk:
            first = desk.open("s1")
            assert (first["state"], first["reason"]) == ("warm", "")
            assert REMEDY in first["system"]
            assert first["tokens"] > 0
            # The same bytes for a retry, whatever it asks.
            assert desk.open("s1", task=OTHER_TASK, fresh=False, cwd="/elsewhere") == first
            desk.journeyman.record(
                conversation(TASK, [("./a-new-command notes.txt", "done")]),
                source="claude_code",
                session_id="later",
                cwd=desk.project,
            )
            desk.journeyman.learn()
            assert desk.open("s1") == first
        with opened(experience, tmp_path) as again:
            assert again.open("s1") == first
            assert again.open("s2") != first  # what was learned since counts for new sessions
            # Each session is named in the store, and in the report.
            assert again.events == [
                ("hermes", session, "opening", "warm") for session in ("s1", "s2")
            ]

    def test_why_a_session_starts_cold(self, experience: Experience, tmp_path: Path) -> None:
        with opened(experience, tmp_path) as desk:
            cold = {
                "begun": desk.open("begun", fresh=False),
                "far": desk.open("far", task="Compose a poem about the sea", cwd="/nowhere"),
                "late": desk.open("late", within_s=0.0),
                "tools": desk.open("tools", tools=[{"input_schema": {"type": "object"}}]),
            }
            for name, answer in cold.items():
                assert answer["state"] == "cold", name
                assert answer["reason"], name
                assert {answer["id"], answer["system"], str(answer["messages"])} == {"", "[]"}
            assert cold["begun"]["reason"] == "it had begun without one"
            assert cold["late"]["reason"] == "it was not ready in time"
            # It stays so, whatever comes later.
            for name, answer in cold.items():
                assert desk.open(name, fresh=True) == answer
                assert desk.open(name, fresh=True, parent="s1") == answer
            with pytest.raises(WrongInput, match="session id"):
                desk.open("")
        with opened(experience, tmp_path) as again:
            assert {name: again.open(name) for name in cold} == cold
            states = [outcome for _, _, _, outcome in again.events]
            assert states == ["cold"] * 4

    def test_a_session_without_a_folder_uses_no_folder_of_the_server(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = []
        for number, folder in enumerate((desk.project, desk.other, "/")):
            monkeypatch.chdir(folder)
            answers.append(desk.open(f"task-{number}", cwd=""))
            assert desk.open(f"talk-{number}", cwd="", task="hello")["state"] == "cold"
        assert answers[0]["state"] == "cold"
        assert all(answer == answers[0] for answer in answers)

    def test_a_folder_of_no_project_has_no_facts(self, desk: Desk, tmp_path: Path) -> None:
        looks = {"tool_name": "Bash", "tool_input": {"command": f"cat {MOVED}"}}
        for number, folder in enumerate(("", "/", str(tmp_path), "/nowhere")):
            session = f"s{number}"
            told = [
                desk.context("SessionStart", session, source="startup", cwd=folder),
                desk.context("UserPromptSubmit", session, prompt=TASK, cwd=folder),
                desk.context("PreToolUse", session, cwd=folder, **looks),
                desk.context("SessionStart", session, source="compact", cwd=folder),
            ]
            assert told == [""] * 4, folder

    @pytest.mark.parametrize("model", ["large", "small"])
    def test_nothing_said_or_printed_in_another_project_is_shown(
        self, experience: Experience, tmp_path: Path, model: str
    ) -> None:
        with opened(experience, tmp_path, settings=SMALL) as desk:
            record_lookups(desk, desk.other)
            (tmp_path / "unknown").mkdir()
            for number, folder in enumerate((desk.project, str(tmp_path / "unknown"), "")):
                asked = {"task": LOOKUP, "tools": [STOCK], "model": model, "cwd": folder}
                opening = desk.open(f"s{number}", **asked)
                assert opening["messages"] == [], folder
            asked = {"task": LOOKUP, "tools": [STOCK], "model": model, "cwd": desk.other}
            assert "flour" in json.dumps(desk.open("own", **asked)["messages"])

    def test_small_models_get_examples_instead_of_facts(
        self, experience: Experience, tmp_path: Path
    ) -> None:
        with opened(experience, tmp_path, settings=SMALL) as desk:
            task = "Is the index of the notes up to date?"
            large = desk.open("large", task=task, model="large")
            small = desk.open("small", task=task, model="small")
        assert START in large["system"]
        assert large["messages"] == []
        assert START not in small["system"]
        assert "./build-index" in json.dumps(small["messages"])

    def test_the_budget_limits_an_opening(self, experience: Experience, tmp_path: Path) -> None:
        settings = f"{SMALL}[hosts]\nbudget_tokens = 120\n"
        with opened(experience, tmp_path, settings=settings) as desk:
            opening = desk.open("s1", task="Is the index up to date?", model="small")
            assert opening["state"] == "warm"
            assert opening["tokens"] <= 120

    def test_a_continued_session_inherits(self, desk: Desk) -> None:
        first = desk.open("parent")
        assert desk.open("child", parent="parent", task=OTHER_TASK, fresh=False) == first
        assert desk.open("grandchild", parent="child", fresh=False) == first
        assert desk.open("cold", fresh=False)["state"] == "cold"
        assert desk.open("of-cold", parent="cold") == desk.open("cold")
        assert desk.open("orphan", parent="unknown")["state"] == "warm"
        assert desk.open("stranger", host="opencode", parent="parent", fresh=False)["id"] == ""

    def test_sessions_that_chance_held_out_stay_without(
        self, experience: Experience, tmp_path: Path
    ) -> None:
        with opened(experience, tmp_path, settings="[hosts]\nholdout = 0.5\n") as desk:
            states = [desk.open(f"s{number}")["state"] for number in range(60)]
            assert 15 <= states.count("off") <= 45
            assert set(states) == {"off", "warm"}
            held_out = states.index("off")
            assert "held out" in desk.open(f"s{held_out}")["reason"]
            assert [desk.open(f"s{number}")["state"] for number in range(60)] == states
            texts = [desk.context("SessionStart", f"s{n}", source="startup") for n in range(60)]
            assert 15 <= texts.count("") <= 45
            for number, text in enumerate(texts):
                later = desk.context("UserPromptSubmit", f"s{number}", prompt=TASK)
                assert bool(later) == bool(text)
        with opened(experience, tmp_path, settings="[hosts]\nholdout = 1.0\n") as desk:
            assert desk.open(f"s{states.index('warm')}")["state"] == "warm"
            assert desk.open("new")["state"] == "off"


class TestTexts:
    def test_a_task_is_told_once_and_nothing_twice(self, desk: Desk) -> None:
        project = desk.context("SessionStart", source="startup")
        assert START in project
        notes = desk.context("UserPromptSubmit", prompt=TASK)
        assert TOLD[TASK] in notes
        assert desk.context("UserPromptSubmit", prompt=TASK) == ""
        assert desk.context("UserPromptSubmit", prompt=f"{TASK}, please") == ""
        site = desk.context("UserPromptSubmit", prompt=OTHER_TASK)
        assert TOLD[OTHER_TASK] in site
        # What the start has told needs no repetition.
        assert desk.context("UserPromptSubmit", prompt="Why does notelint fail?") == ""
        told = [line for text in (project, notes, site) for line in text.splitlines()]
        items = [line for line in told if line.startswith("- ")]
        assert len(items) == len(set(items)), items
        assert desk.context("SessionStart", source="startup") == ""
        record = record_of(desk, "s1", "claude-code")
        assert record.state == "warm"
        assert f"[Journeyman {record.opening}:]" in project
        assert "[Journeyman" not in notes + site
        assert len(record.shown) == len(set(record.shown))

    def test_a_request_gets_two_facts_at_most(self, desk: Desk) -> None:
        desk.context("SessionStart", source="startup")
        prompt = f"Where are {', '.join((*GONE.values(), MOVED))}?"
        assert desk.context("UserPromptSubmit", prompt=prompt).count("does not exist") == 2
        assert desk.context("UserPromptSubmit", prompt=prompt).count("does not exist") == 1
        assert desk.context("UserPromptSubmit", prompt=prompt) == ""

    def test_what_no_fact_is_about_gets_nothing(self, desk: Desk) -> None:
        desk.context("SessionStart", source="startup")
        for prompt in (
            "Rebuild the index of the notes, please",
            "Publish the documentation site to staging",
            "Read notes/july.md.bak",
            "x" * 100_000,
        ):
            assert desk.context("UserPromptSubmit", prompt=prompt) == "", prompt[:80]

    def test_texts_are_short_enough_whatever_was_learned(
        self, experience: Experience, tmp_path: Path
    ) -> None:
        with opened(experience, tmp_path, settings="[hosts]\nbudget_tokens = 100000\n") as desk:
            for number in range(12):
                lines = [
                    (f"./site tool-{at} --mode {'x' * 50} notes.txt", f"line {at} " * 40)
                    for at in range(25)
                ]
                paths = [f"pages/{'y' * 100}{at}.md" for at in range(12)]
                gone = "\n".join(f"cat: {path}: No such file or directory" for path in paths)
                lines.append((f"cat {' '.join(paths)}", f"Exit code 1\n{gone}"))
                desk.journeyman.record(
                    conversation(f"Check the index of the notes, part {number}", lines),
                    source="claude_code",
                    session_id=f"long-{number}",
                    cwd=desk.project,
                )
            desk.journeyman.learn()
            start = desk.context("SessionStart", source="startup")
            asked = desk.context("UserPromptSubmit", prompt=f"Where are {' '.join(paths)}?")
            assert "./site tool-" in start
            assert 0 < tokens(start) <= LONGEST_START
            assert 0 < tokens(asked) <= MOMENTS["prompt"].tokens

    def test_a_compacted_session_sees_its_first_text_again(self, desk: Desk) -> None:
        project = desk.context("SessionStart", source="startup")
        notes = desk.context("UserPromptSubmit", prompt=TASK)
        assert desk.context("SessionStart", source="compact") == project
        assert desk.context("UserPromptSubmit", prompt=TASK) == notes
        assert desk.context("UserPromptSubmit", prompt=TASK) == ""
        assert desk.context("SessionStart", "unknown", source="compact") == ""

    def test_a_compacted_session_sees_what_it_did_itself(self, desk: Desk) -> None:
        project = desk.context("SessionStart", "own", source="startup")
        work = [
            ("./site build --strict docs/", "41 pages"),
            ("make count", "2"),
            ("make figures", "done"),
            ("make test", "Exit code 2\nFAIL: notes"),
        ]
        messages = conversation("Change the index", work)
        edit = {"file_path": f"{desk.project}/notes.txt", "old_string": "a", "new_string": "b"}
        function = {"name": "Edit", "arguments": json.dumps(edit)}
        messages[1:1] = [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "edit", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "edit", "content": "The file has been updated."},
        ]
        desk.journeyman.record(messages, source="claude_code", session_id="own", cwd=desk.project)
        desk.journeyman.learn()
        again = desk.context("SessionStart", "own", source="compact")
        assert again.startswith(project)
        own = again.removeprefix(project)
        assert "`make figures`" in own
        assert "make count" not in own  # the start says it
        assert "Failed last: `make test`" in own
        assert "notes.txt" in own
        assert "make test`;" not in own  # it did not work
        assert tokens(own) <= MOMENTS["compaction"].tokens + 5
        # Another session has nothing of it.
        assert "Failed last" not in desk.context("SessionStart", "other", source="compact")

    def test_what_began_elsewhere_gets_no_texts(self, desk: Desk) -> None:
        assert desk.context("UserPromptSubmit", "s2", prompt=TASK) == ""
        assert desk.context("SessionStart", "s3", source="resume") == ""
        assert desk.context("UserPromptSubmit", "s3", prompt=TASK) == ""
        desk.context("SessionStart", "s4", source="startup")
        assert desk.context("SessionStart", "s4", source="resume") == ""
        assert desk.context("UserPromptSubmit", "s4", prompt=TASK)

    def test_a_late_text_comes_with_the_next_prompt(self, desk: Desk) -> None:
        with pytest.raises(ServiceUnavailable, match="not ready in time"):
            desk.context("SessionStart", source="startup", within_s=0.0)
        # Here the answer was lost.
        assert desk.context("SessionStart", "s2", source="startup", is_received=False)
        assert desk.context("SessionStart", "s3", source="startup", is_received=False)
        for session, prompt in (("s1", TASK), ("s2", TASK), ("s3", "/review")):
            text = desk.context("UserPromptSubmit", session, prompt=prompt)
            assert START in text
            assert (TOLD[TASK] in text) == (prompt == TASK)
            assert desk.context("UserPromptSubmit", session, prompt=prompt) == ""
        desk.context("UserPromptSubmit", "s2", prompt=OTHER_TASK, within_s=0.0)
        assert ("claude-code", "s2", "failure", "late") in desk.events

    def test_the_kinds_that_are_told(self, experience: Experience, tmp_path: Path) -> None:
        settings = '[hosts]\nfacts = ["command"]\n'
        with opened(experience, tmp_path, settings=settings) as desk:
            start = desk.context("SessionStart", source="startup")
            assert START in start
            assert "notelint" not in start
            assert desk.context("UserPromptSubmit", prompt=TASK) == ""
            looks = {"tool_name": "Bash", "tool_input": {"command": f"cat {MOVED}"}}
            assert desk.hook("PreToolUse", **looks) is None

    def test_what_a_person_told_to_remember_comes_first(self, desk: Desk) -> None:
        project = desk.journeyman.find_project(desk.project)
        desk.journeyman.facts.remember(project, "never run git stash here")
        start = desk.context("SessionStart", source="startup")
        assert start.index("never run git stash here") < start.index(START)
        assert "git stash" not in desk.context(
            "SessionStart", "s2", source="startup", cwd=desk.other
        )

    def test_facts_that_no_longer_hold_are_not_told(
        self, experience: Experience, tmp_path: Path
    ) -> None:
        with opened(experience, tmp_path) as desk:
            name = desk.journeyman.find_project(desk.project)
            checkout = tmp_path / name.rpartition("/")[2]
            shutil.copytree(desk.project, checkout)
            (checkout / "check-index").unlink()
            (checkout / "notes").mkdir()
            (checkout / GONE[TASK]).write_text("It is back.")
            (checkout / FOUND).unlink()
            (checkout / "AGENTS.md").write_text("Run `make count` when you are done.\n")
            moments = desk.journeyman.moments(checkout)
            start = moments.start().text
            assert "./build-index" in start
            assert "check-index" not in start
            assert "make count" not in start
            assert moments.prompt(TASK).is_empty
            assert moments.prompt(OTHER_TASK).text
            assert moments.prompt(f"Print {MOVED}").is_empty


class TestDelivery:
    def test_an_answer_that_nobody_received_leaves_the_session_cold(self, desk: Desk) -> None:
        assert desk.open("s1", is_received=False)["state"] == "warm"
        assert desk.open("s1")["state"] == "cold"
        assert desk.context("SessionStart", is_received=False, source="startup")
        assert record_of(desk, "s1", "claude-code").state == "cold"
        # What came before stays.
        project = desk.context("SessionStart", "s2", source="startup")
        notes = desk.context("UserPromptSubmit", "s2", prompt=TASK, is_received=False)
        assert desk.context("UserPromptSubmit", "s2", prompt=TASK) == notes
        assert desk.context("SessionStart", "s2", source="compact") == project

    def test_the_store_knows_which_session_was_warm(self, desk: Desk) -> None:
        warm = desk.open("warm")
        desk.open("lost", is_received=False)
        desk.open("cold", fresh=False)
        for name in ("warm", "lost", "cold"):
            desk.journeyman.record(conversation(TASK, []), source="hermes", session_id=name)
        stored = {one.session.id: one.session.opening for one in desk.journeyman.sessions.list()}
        assert stored["warm"] == warm["id"]
        assert stored["lost"] == stored["cold"] == ""

    def test_a_locked_database_costs_no_more_than_the_deadline(
        self, experience: Experience, tmp_path: Path
    ) -> None:
        with (
            opened(experience, tmp_path, settings="busy_timeout_s = 3600") as desk,
            closing(sqlite3.connect(tmp_path / "home" / "journeyman.db")) as other,
        ):
            kept = desk.open("kept")
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="locked"):
                handle_only(desk, "s1", within_s=0.3)
            assert handle_only(desk, "kept", within_s=LONGEST_S) == kept  # reading needs no lock
            other.execute("ROLLBACK")
            # Nothing was decided, and the next attempt may succeed.
            assert desk.open("s1")["state"] == "warm"

    def test_a_full_disk_leaves_the_session_cold(self, desk: Desk) -> None:
        kept = desk.open("kept")
        engine = desk.journeyman._store._engine

        def fill(connection: Any, _entry: Any) -> None:
            connection.execute("PRAGMA max_page_count = 1")  # it is at least the present size

        sa.event.listen(engine, "connect", fill)
        engine.dispose()
        with pytest.raises(StoreUnavailable, match="full"):
            [desk.open(f"s{number}") for number in range(100)]
        assert desk.open("kept") == kept
        sa.event.remove(engine, "connect", fill)
        engine.dispose()
        assert desk.open("new")["state"] == "warm"


def handle_only(desk: Desk, session: str, within_s: float) -> Any:
    """An opening without what follows the answer."""
    body = {"session": session, "task": TASK, "cwd": desk.project}
    exchange = Exchange(host="hermes", ends=deadline(within_s))
    return json.loads(desk.service.handle("opening", json.dumps(body).encode(), exchange))


KEPT = TOLD[TASK].encode()
"""A part of kept openings, which nothing else in the database has: facts are counted."""


def stored_bytes(folder: Path) -> bytes:
    """All that is in the files of the database, free pages included."""
    files = (folder / "home").glob("journeyman.db*")
    return b"".join(file.read_bytes() for file in files)


class TestForgetting:
    def test_forgetting_deletes_kept_openings(self, desk: Desk, tmp_path: Path) -> None:
        desk.open("s1")
        desk.context("SessionStart", "s2", source="startup")
        desk.context("UserPromptSubmit", "s2", prompt=TASK)
        assert KEPT in stored_bytes(tmp_path)
        desk.journeyman.forget(matching="notes/july.md")
        assert desk.open("s1")["state"] == "cold"
        assert "forgotten" in desk.open("s1")["reason"]
        assert desk.context("SessionStart", "s2", source="compact") == ""
        for host, session in (("hermes", "s1"), ("claude-code", "s2")):
            record = record_of(desk, session, host)
            assert (record.content, record.shown) == ("[]", ())
        assert KEPT not in stored_bytes(tmp_path)
        assert TOLD[TASK] not in desk.open("s3")["system"]


class TestExplanation:
    def test_a_person_sees_what_a_session_was_given(self, desk: Desk) -> None:
        project = desk.context("SessionStart", source="startup")
        task = desk.context("UserPromptSubmit", prompt=TASK)
        (explained,) = explain_session(desk.journeyman, "s")
        assert (explained.host, explained.session, explained.state) == ("claude-code", "s1", "warm")
        assert explained.texts == (project, task)
        with pytest.raises(WrongInput, match="No session of a host"):
            explain_session(desk.journeyman, "unknown")


class TestThreads:
    def test_one_session_is_decided_once(self, desk: Desk) -> None:
        tasks = [TASK, OTHER_TASK, "hello"] * 4
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda task: desk.open("s1", task=task), tasks))
        assert all(answer == answers[0] for answer in answers)
        assert desk.open("s1") == answers[0]
