"""`journeyman run` and `journeyman review` as a person uses them, with a scripted model behind a
real server.
"""

import json
import re
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.journeys.test_agent_server import never_ends
from tests.model_server import Answer, Made, ModelServer, Received, calls, fails, says, waits
from tests.program import Command, Process
from tests.tables import table
from tests.waiting import until

from journeyman import Journeyman
from journeyman.agent.tools import confinement

needs_confinement = pytest.mark.skipif(
    confinement.why_unconfined() != "", reason="the kernel confines nothing"
)
LIST = "Add quince to the list in lists/fruit.txt and show it."
WISH = "Please always answer in German."
KEPT = "The user wants answers in German."
EVERY_TURN = {"JOURNEYMAN_REVIEW_EVERY_TURNS": "1"}


class Desk:
    """A person with a workspace and a model that follows a script."""

    def __init__(self, command: Command, name: str = "work") -> None:
        self.command = command
        self.work = command.home / name
        self.work.mkdir()
        self.server = ModelServer()

    def start(self, *arguments: str, typed: str = "", **environ: str) -> Process:
        return self.command.start(*arguments, typed=typed, **(self._environ | environ))

    def __call__(
        self, *arguments: str, code: int = 0, typed: str = "", **environ: str
    ) -> CompletedProcess[str]:
        return self.command(*arguments, code=code, typed=typed, **(self._environ | environ))

    def run(self, task: str, *options: str, code: int = 0, **environ: str) -> CompletedProcess[str]:
        return self("run", task, "--workspace", self.work.name, *options, code=code, **environ)

    def json(self, *arguments: str, code: int = 0, **environ: str) -> Any:
        return json.loads(self(*arguments, "--json", code=code, **environ).stdout)

    def session(self) -> Any:
        """The newest session, as in `sessions show`."""
        newest = self.json("sessions", "list", "--source", "journeyman")[0]["session"]["id"]
        return self.json("sessions", "show", newest)

    def remember(self, wish: str) -> None:
        """Tell Journeyman what the person wants in the workspace."""
        home = self.command.home
        with Journeyman(home=home / ".journeyman", environ={"HOME": str(home)}) as journeyman:
            journeyman.facts.remember(journeyman.find_project(self.work), wish)

    @property
    def sent(self) -> list[Any]:
        """The messages of each request."""
        return [body["messages"] for body in self.server.chats]

    @property
    def _environ(self) -> dict[str, str]:
        return {
            "JOURNEYMAN_MODEL_NAME": "scripted",
            "JOURNEYMAN_MODEL_BASE_URL": self.server.base_url,
        }


@contextmanager
def new_desk(tables: Path, home: Path) -> Iterator[Desk]:
    """A person without recorded sessions."""
    (home / ".journeyman").mkdir(mode=0o700, parents=True)
    shutil.copyfile(tables, home / ".journeyman" / "journeyman.db")
    desk = Desk(Command(home))
    with desk.server:
        yield desk


@pytest.fixture
def desk(tables: Path, tmp_path: Path) -> Iterator[Desk]:
    with new_desk(tables, tmp_path) as desk:
        yield desk


@pytest.fixture(scope="module")
def home_with_template(learned_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which something was learned and built into a template. Do not use it: copy it."""
    home = tmp_path_factory.mktemp("experienced") / "home"
    shutil.copytree(learned_home, home)
    with Journeyman(home=home / ".journeyman", environ={"HOME": str(home)}) as journeyman:
        journeyman.templates.build("everyday", min_messages=0)
    return home


@pytest.fixture
def experienced(home_with_template: Path, tmp_path: Path) -> Iterator[Desk]:
    """A person with plenty of recorded experience."""
    shutil.copytree(home_with_template, tmp_path / "home")
    desk = Desk(Command(tmp_path / "home"))
    with desk.server:
        yield desk


def shell(command: str, call_id: str = "call") -> Answer:
    return calls(("terminal", {"command": command}), ids=[call_id])


class TestTasks:
    def test_the_task_as_arguments_and_from_standard_input(self, desk: Desk) -> None:
        desk.server.then(says("Hello."), says("Hello again."))
        said = desk("run", "Say", "hello.", "--workspace", "work")
        assert "Hello." in said.stdout
        said = desk("run", "-", "--workspace", "work", typed="Say it\nagain.\n")
        assert "Hello again." in said.stdout
        first, second = (messages[-1] for messages in desk.sent)
        assert (first["role"], first["content"]) == ("user", "Say hello.")
        assert second["content"].strip() == "Say it\nagain."

    @table(
        ("arguments", "code", "words"),
        [
            ((), 2, "Pass a task for the agent"),
            (("-",), 2, "Pass a task for the agent"),
            (("Go.", "--warm", "nobody"), 1, "no template 'nobody'"),
            (("Go.", "--workspace", "nowhere"), 2, "nowhere is not a folder"),
            (("Go.", "--turns", "0"), 2, "'--turns'"),
            (("Go.", "--cost", "cheap"), 2, "'--cost'"),
            (("Go.", "--workspace", "."), 2, "would be able to read"),
        ],
        ids=[
            *("no_task", "empty_input", "unknown_template", "missing_workspace", "zero_turns"),
            *("invalid_cost", "workspace_is_home"),
        ],
    )
    def test_errors_are_reported_before_any_request(
        self, desk: Desk, arguments: tuple[str, ...], code: int, words: str
    ) -> None:
        place = () if "--workspace" in arguments else ("--workspace", "work")
        done = desk("run", *arguments, *place, code=code)
        assert words in " ".join(done.stderr.split())
        assert done.stdout == "" or "scripted" in done.stdout
        assert desk.server.chats == []
        assert desk.json("sessions", "list") == []

    def test_json_output(self, desk: Desk) -> None:
        desk.server.then(shell("echo one"), says("Done."))
        done = desk.run("Say one.", "--json", "--tag", "trial")
        told = json.loads(done.stdout)
        assert done.stderr == ""
        assert (told["status"], told["completed"], told["text"]) == ("done", True, "Done.")
        assert (told["turns"], told["calls"], told["runner"]) == (2, 1, "journeyman")
        assert told["total_tokens"] == 254
        assert told["steps"][0]["tool"] == "terminal"
        assert json.loads(told["steps"][0]["result"])["output"] == "one\n"
        found = desk.json("sessions", "list", "--tag", "trial")
        assert [one["session"]["id"] for one in found] == [told["session"]]

    @table(("command", "is_told"), [("echo one > list", True), ("cat list", False)])
    def test_a_run_that_changed_files_shows_how_to_undo_it(
        self, tables: Path, tmp_path: Path, command: str, is_told: bool
    ) -> None:
        with new_desk(tables, tmp_path / str(is_told)) as desk:
            (desk.work / "list").write_text("none\n")
            desk.server.then(shell(command), says("Done."))
            said = desk.run("Say one.").stdout
            session = desk.session()["overview"]["session"]["id"]
            assert (f"to undo the changes: journeyman undo {session}" in said) == is_told
            if is_told:
                desk("undo", session, "--yes")
            assert (desk.work / "list").read_text() == "none\n"


class TestLimits:
    @table(
        ("limit", "stop", "requests"),
        [(("--turns", "2"), "turns", 2), (("--tokens", "1"), "tokens", 0)],
    )
    def test_turn_and_token_limits(
        self, tables: Path, tmp_path: Path, limit: tuple[str, str], stop: str, requests: int
    ) -> None:
        with new_desk(tables, tmp_path / stop) as desk:
            desk.server.then(*[shell(f"echo {number}", f"c{number}") for number in range(5)])
            told = json.loads(desk.run("Count.", "--json", *limit, code=1).stdout)
        assert (told["status"], told["turns"], told["completed"]) == (stop, requests, False)
        assert limit[1] in told["reason"]
        assert len(desk.server.chats) == requests

    def test_cost_limit(self, desk: Desk) -> None:
        usage = {"prompt_tokens": 1_000, "completion_tokens": 10, "cost": 0.02}
        desk.server.then(calls(("terminal", {"command": "echo 1"}), usage=usage), says("Done."))
        done = desk.run("Count.", "--cost", "0.01", code=1)
        assert "About $0.0200 was spent; the limit is $0.0100." in done.stdout
        assert len(desk.server.chats) == 1

    def test_time_limit(self, desk: Desk) -> None:
        desk.server.then(shell("sleep 1"), shell("echo 1", "b"), says("Done."))
        done = desk.run("Wait.", "--seconds", "1", code=1)
        assert "The limit of 1 seconds is reached." in done.stdout
        assert len(desk.server.chats) == 1


class TestWarm:
    def test_warm_off_starts_cold(self, experienced: Desk) -> None:
        experienced.server.then(says("Done."))
        assert "Starting cold: as requested" in experienced.run(LIST, "--warm", "off").stdout
        assert [one["role"] for one in experienced.sent[0]] == ["system", "user"]
        session = experienced.session()["overview"]["session"]
        assert session["details"]["warm"] is False

    def test_without_experience_it_starts_cold_and_explains_why(self, desk: Desk) -> None:
        desk.server.then(says("Done."))
        assert re.search(r"Starting cold: \w+.*learn", desk.run(LIST).stdout)

    def test_without_relevant_experience_it_starts_cold_and_explains_why(
        self, experienced: Desk
    ) -> None:
        experienced.server.then(says("Done."))
        said = experienced.run("Hum the overture of an opera in the bath tub").stdout
        assert "Starting cold: " in said
        assert "as requested" not in said
        assert len(experienced.sent[0]) == 2

    def test_facts_of_the_workspace_are_told(self, experienced: Desk) -> None:
        experienced.remember("sort every list")
        experienced.server.then(says("Done."), says("Done."))
        said = experienced.run(LIST).stdout
        assert re.search(r"Starting warm: 1 fact, about \d+ tokens", said)
        told = json.loads(experienced.run(LIST, "--json").stdout)
        assert experienced.session()["overview"]["session"]["details"]["warm"] is True
        assert told["opening"]["examples"] == []
        first, second = experienced.sent
        assert first == second, "the same task does not begin with the same bytes"
        assert "sort every list" in first[0]["content"]
        assert [one["role"] for one in first] == ["system", "user"]

    def test_a_small_model_is_shown_examples_and_why(self, experienced: Desk) -> None:
        experienced.remember("sort every list")
        experienced.server.then(says("Done."), says("Done."))
        small = {"JOURNEYMAN_OPENING_SMALL_MODELS": "scripted"}
        said = experienced.run(LIST, **small).stdout
        assert re.search(r"Starting warm: \d examples?, about [\d,]+ tokens", said)
        assert "Add medlar to the list in lists/fruit.txt and show it." in said
        assert re.search(r"why: the first call for a near request \(0\.\d\d\)", said)
        session = experienced.session()["overview"]["session"]
        told = json.loads(experienced.run(LIST, "--json", **small).stdout)
        recorded = session["details"]["opening"]
        assert session["details"]["warm"] is True
        assert recorded["id"] == told["opening"]["id"] != ""
        assert len(told["opening"]["examples"]) == len(recorded["patterns"])
        first, second = experienced.sent
        assert first == second, "the same task does not begin with the same bytes"
        assert first[-1] == {"role": "user", "content": LIST}
        assert any(one.get("tool_calls") for one in first)
        assert "sort every list" not in str(first)

    def test_a_warm_start_with_a_named_template(self, experienced: Desk) -> None:
        experienced.server.then(says("Done."))
        said = experienced.run(LIST, "--warm", "everyday").stdout
        assert re.search(r"Starting warm: \d examples? of everyday", said)
        session = experienced.session()["overview"]["session"]
        assert session["details"]["opening"]["template"] == "everyday@1"


class TestInterruption:
    def test_ctrl_c_during_a_call(self, desk: Desk) -> None:
        desk.server.then(
            calls(
                ("terminal", {"command": "touch begun; sleep 50; touch ended"}),
                ("terminal", {"command": "touch second"}),
                ids=["first", "second"],
            )
        )
        running = desk.start("run", "Wait.", "--workspace", "work")
        until((desk.work / "begun").exists)
        running.signal(signal.SIGINT)
        done = running.wait(code=1)
        self.check(desk, done)
        assert sorted(path.name for path in desk.work.iterdir()) == ["begun"]
        shown = desk.session()
        assert [one["status"] for one in shown["verdicts"]] == ["interrupted", "interrupted"]

    @pytest.mark.soak
    @pytest.mark.parametrize("answer", [never_ends, waits])
    def test_ctrl_c_during_a_reply(self, desk: Desk, answer: Callable[[], Answer]) -> None:
        desk.server.then(shell("echo 1"), answer())
        running = desk.start("run", "Wait.", "--workspace", "work")
        until(lambda: len(desk.server.chats) == 2)
        running.signal(signal.SIGINT)
        done = running.wait(code=1)
        self.check(desk, done)
        assert [one["status"] for one in desk.session()["verdicts"]] == ["ok"]

    def check(self, desk: Desk, done: CompletedProcess[str]) -> None:
        """Check that the interruption is reported and the session is complete."""
        assert "Stopped (interrupted)." in done.stdout
        assert "finished steps are stored" in done.stderr
        overview = desk.session()["overview"]
        session = overview["session"]
        assert (session["end_reason"], overview["calls"]) == ("interrupted", overview["answered"])


@needs_confinement
def test_commands_have_network_access_only_if_granted(desk: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('yes')"
        (desk.work / "reach.py").write_text(script)
        desk.server.then(*(shell("python3 reach.py"), says("Done.")) * 2)
        desk.run("Reach it.")
        desk.run("Reach it.", "--network")
    without, given = (messages[-1]["content"] for messages in desk.sent[1::2])
    assert "Connection refused" in without
    assert '"output":"yes\\n"' in given.replace(": ", ":")


def test_the_first_line_warns_if_commands_are_unconfined(desk: Desk) -> None:
    desk.server.then(shell("ls"), says("Done."))
    done = desk.run("Make it.", JOURNEYMAN_AGENT_CONFINE="false")
    assert done.stderr.startswith("Nothing confines commands here: agent.confine is false.")
    assert "unconfined" in desk.sent[1][-1]["content"]


def test_a_dangerous_command_without_an_approver_is_refused(desk: Desk) -> None:
    (desk.work / "keep").mkdir()
    (desk.work / "keep" / "letter.txt").write_text("dear")
    desk.server.then(shell("rm -rf ."), says("I was not allowed to."))
    done = desk.run("Tidy up.")
    assert "refused" in done.stdout
    assert (desk.work / "keep" / "letter.txt").read_text() == "dear"
    told = desk.sent[-1][-1]["content"]
    assert "no one is here to allow it" in told
    assert [one["status"] for one in desk.session()["verdicts"]] == ["refused"]


def is_review(request: Received) -> bool:
    return any(one["role"] == "system" for one in request.body["messages"][1:])


def reviewing(*writes: Answer, after: str = "Gut.") -> Made:
    """A model that replies to a turn, and makes these writes when asked to review it."""
    left = list(writes)

    def answer(request: Received) -> Answer:
        if not is_review(request):
            return says(after)
        return left.pop(0) if left else says("Nothing to keep.")

    return answer


def remember(content: str = KEPT, evidence: str = "always answer in German") -> Answer:
    arguments = {"action": "add", "target": "user", "content": content, "evidence": evidence}
    return calls(("memory", arguments), ids=["write"])


class TestReviews:
    def test_a_review_and_its_undo(self, desk: Desk) -> None:
        answer = reviewing(remember(evidence="I made it up"), remember())
        desk.server.then(*[answer] * 4)
        desk.run(WISH)
        session = desk.session()["overview"]["session"]["id"]
        memory = desk.command.home / ".journeyman" / "memories" / "USER.md"

        said = desk("review", session).stdout
        assert KEPT in said
        assert "evidence: always answer in German" in said
        assert memory.read_text() == KEPT

        (listed,) = desk.json("review", "list")
        assert (listed["session"], listed["status"], len(listed["writes"])) == (
            *(session, "changed", 1),
        )
        assert session in desk("review", "list").stdout
        shown = desk("review", "show", listed["id"]).stdout
        assert KEPT in shown
        assert (
            "neither the id"
            in desk.json("review", "show", listed["id"])["details"]["steps"][0]["result"]
        )
        origin = listed["writes"][0]["provenance"]
        assert (origin["origin"], origin["session"]) == ("background_review", session)

        assert "Undone" in desk("review", "undo", listed["id"]).stdout
        assert KEPT not in (memory.read_text() if memory.exists() else "")
        assert "Nothing is left to undo" in desk("review", "undo", listed["id"]).stdout
        assert "(undone)" in desk("review", "show", listed["id"]).stdout

    def test_a_review_after_a_turn_prints_one_line(self, desk: Desk) -> None:
        desk.server.then(*[reviewing(remember())] * 3)
        done = desk.run(WISH, "--review", **EVERY_TURN)
        (line,) = done.stderr.splitlines()
        assert line.startswith("Review: ")
        assert KEPT in line
        assert "journeyman review undo" in line
        assert KEPT not in done.stdout
        assert "Gut." in done.stdout

        turn, review = desk.server.chats[:2]
        assert review["messages"][: len(turn["messages"])] == turn["messages"]
        assert review["tools"] == turn["tools"]

        rows = {row["key"]: row for row in desk.json("usage", "--by", "task")["rows"]}
        assert {key: row["api_calls"] for key, row in rows.items()} == {
            "": 1,
            "background_review": 2,
        }
        assert rows["background_review"]["output_tokens"] == 14
        shown = desk("usage", "--by", "task").stdout
        assert "\nmain " in shown
        assert "\nbackground_review " in shown
        assert desk.session()["overview"]["messages"] == 3

    def test_a_failed_review_is_reported_once_and_does_not_fail_the_run(self, desk: Desk) -> None:
        desk.server.then(says("Gut."), fails(401, "no such key"))
        done = desk.run(WISH, "--review", **EVERY_TURN)
        assert "Gut." in done.stdout
        (line,) = done.stderr.splitlines()
        assert line.startswith("The review failed: ")
        assert [one["status"] for one in desk.json("review", "list")] == ["failed"]


def test_runs_of_the_agent_become_experience(desk: Desk) -> None:
    (desk.work / "bin").mkdir()
    tidy = desk.work / "bin" / "tidy"
    tidy.write_text("#!/bin/sh\nsort -o list.txt list.txt && cat list.txt\n")
    tidy.chmod(0o755)
    (desk.work / "list.txt").write_text("quince\npear\n")
    for _ in range(2):
        desk.server.then(
            shell("tidylist -q list.txt", "one"),
            shell("bin/tidy list.txt", "two"),
            says("It is tidy."),
        )
        desk.run(LIST)
    (listed, _) = desk.json("sessions", "list")
    assert (listed["session"]["source"], listed["session"]["title"]) == ("journeyman", LIST)
    assert (listed["calls"], listed["answered"]) == (2, 2)
    assert LIST[:20] in desk("sessions", "list").stdout
    assert "4 calls" in desk("profile").stdout
    assert "2 sessions" in desk("learn").stdout
    opened = desk("open", LIST, "--project", "work", "--format", "text").stdout
    assert "`tidylist` (instead: `bin/tidy list.txt`)" in opened
    desk.server.then(says("Done."))
    assert "Starting warm: 1 fact" in desk.run(LIST).stdout
    assert "`tidylist` (instead: `bin/tidy list.txt`)" in str(desk.sent[-1])
