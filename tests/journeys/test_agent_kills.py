"""An agent that is killed at any moment: every finished step is stored, the session can be resumed,
and nothing is done twice.
"""

import json
import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from threading import Condition

import pytest
from msgspec import Struct
from tests.model_server import Answer, ModelServer, Received, calls, says
from tests.program import Command
from tests.waiting import LONGEST_S, until

from journeyman import Journeyman
from journeyman.outcomes.judge import judge
from journeyman.records import Call

_KILLED_IN_A_ROW = 8


class Counting:
    """A model that counts: it requests that numbers be written to a file, each once, and that the
    file be read now and then. Whatever the results, it continues with the next number. At each
    request, it checks that the store already has every result in the request.
    """

    def __init__(self, home: Path, numbers: int) -> None:
        self.home = home
        self.numbers = numbers
        self.next = 1
        self.rounds = 0
        self.told: dict[str, str] = {}
        self.too_early: list[str] = []
        self.requests = 0
        self._arrived = Condition()

    def __call__(self, request: Received) -> Answer:
        results = {
            one["tool_call_id"]: one["content"]
            for one in request.body["messages"]
            if one["role"] == "tool"
        }
        stored = stored_results(self.home)
        self.too_early += [call for call, text in results.items() if stored.get(call) != text]
        self.told |= results
        with self._arrived:
            self.requests += 1
            self._arrived.notify_all()
        time.sleep(0.02)  # like the latency of a real model
        return self._answer()

    def _answer(self) -> Answer:
        kind, self.rounds = self.rounds % 4, self.rounds + 1
        if self.next > self.numbers:
            return says("Done.")
        if kind == 3:
            ids = [f"read{self.rounds}-{place}" for place in range(3)]
            return calls(
                ("read_file", {"path": "done.txt"}),
                ("search_files", {"pattern": "1", "path": "."}),
                ("read_file", {"path": "done.txt", "limit": 1}),
                ids=ids,
            )
        return self._asked_for(*([1, 1, 2][kind] * [("after", "before")[kind % 2]]))

    def _asked_for(self, *sleeps: str) -> Answer:
        """Calls that write numbers, with a pause before or after during which the outcome is not
        stored yet.
        """
        asked = []
        for sleep in sleeps:
            write = f"echo {self.next} >> done.txt"
            command = f"sleep 0.05; {write}" if sleep == "before" else f"{write}; sleep 0.05"
            asked.append((str(self.next), command))
            self.next += 1
        wanted = [("terminal", {"command": command}) for _, command in asked]
        return calls(*wanted, ids=[number for number, _ in asked])

    def wait_for_requests(self, number: int) -> bool:
        """Wait until this many requests have arrived."""
        with self._arrived:
            return self._arrived.wait_for(lambda: self.requests >= number, LONGEST_S)


def stored_results(home: Path) -> dict[str, str]:
    """The results currently stored, by the ids of their calls."""
    address = f"file:{home / '.journeyman' / 'journeyman.db'}?mode=ro"
    asked = "SELECT tool_call_id, text FROM messages WHERE role = 'tool'"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        return dict(connection.execute(asked).fetchall())


def written(home: Path) -> Counter[str]:
    file = home / "work" / "done.txt"
    return Counter(file.read_text().split() if file.exists() else ())


class Place:
    """A home with a workspace, and a counting model for the runs in it."""

    def __init__(self, home: Path, numbers: int) -> None:
        (home / "work").mkdir(parents=True)
        self.counting = Counting(home, numbers)
        self.server = ModelServer(always=self.counting)
        self.command = Command(home)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "JOURNEYMAN_MODEL_NAME": "counting",
            "JOURNEYMAN_MODEL_BASE_URL": self.server.base_url,
        }

    def kill(self, *arguments: str, requests: int, later_s: float = 0.0) -> None:
        """Start a run and kill it at its n-th request, or `later_s` seconds after it."""
        before = self.counting.requests
        running = self.command.start(*arguments, **self.environ)
        arrived = self.counting.wait_for_requests(before + requests)
        time.sleep(later_s)
        running.signal(signal.SIGKILL)
        done = running.wait()
        assert arrived, f"it never came so far\n{done.stdout}\n{done.stderr}"


class Found(Struct, frozen=True, kw_only=True):
    """The stored session and its calls; open calls have no result."""

    session: str
    calls: list[Call]
    is_answered: bool

    @property
    def open_calls(self) -> list[str]:
        return [call.id for call in self.calls if call.result is None]


def found(place: Place) -> Found | None:
    """The stored state, after checking everything that must hold at any moment."""
    counting, home = place.counting, place.command.home
    assert counting.too_early == [], "results were sent before they were saved"
    with Journeyman(home=home / ".journeyman", environ={"HOME": str(home)}) as journeyman:
        sessions = journeyman.sessions.list()
        if not sessions:
            assert (counting.requests, written(home)) == (0, {})
            return None
        (overview,) = sessions
        session = overview.session.id
        messages = list(journeyman.sessions.messages(session))
        made = list(journeyman.sessions.calls(session))
    assert [one.role for one in messages[:1]] == ["system"]
    for message in messages:
        assert message.text or message.tool_calls
        if message.role == "tool":
            json.loads(message.text)
        for asked in message.tool_calls:
            json.loads(asked.arguments)
    results = {call.id: call.result for call in made if call.result is not None}
    assert len(results) == sum(one.role == "tool" for one in messages)
    assert counting.told.items() <= results.items()
    assert len({call.id for call in made}) == len(made)
    check_written(home, made)
    last = messages[-1]
    is_answered = last.role == "assistant" and not last.tool_calls
    return Found(session=session, calls=made, is_answered=is_answered)


def check_written(home: Path, made: list[Call]) -> None:
    """Check that nothing was done twice, that everything done is stored, and that every successful
    call was done.
    """
    lines = written(home)
    assert set(lines.values()) <= {1}, f"written twice: {lines}"
    assert set(lines) <= {call.id for call in made}, "something was done that is not in the store"
    ok = {call.id for call in made if call.tool == "terminal" and judge(call).status == "ok"}
    assert ok <= set(lines)


def resume_to_the_end(place: Place, before: Found) -> None:
    """Resume after a kill; a few of the remaining numbers are enough."""
    counting = place.counting
    counting.numbers = min(counting.numbers, counting.next + 1)
    done = place.command("run", "--resume", before.session, "--workspace", "work", **place.environ)
    assert "Done." in done.stdout
    after = found(place)
    assert after is not None
    assert (after.session, after.is_answered, after.open_calls) == (before.session, True, [])
    became = {call.id: judge(call).status for call in after.calls}
    for call in before.calls:
        if call.result is None:
            assert became[call.id] == "interrupted"
            assert "may or may not have run" in counting.told[call.id]
        else:
            assert became[call.id] == judge(call).status
    assert counting.next > counting.numbers


TASK = ("run", "Write the numbers.", "--workspace", "work", "--warm", "off")
NUMBERS = 8
REQUESTS = 8


def test_an_undisturbed_run(tmp_path: Path) -> None:
    place = Place(tmp_path / "home", NUMBERS)
    with place.server:
        done = place.command(*TASK, **place.environ)
    assert "Done." in done.stdout
    assert sorted(map(int, written(place.command.home))) == list(range(1, NUMBERS + 1))
    state = found(place)
    assert state is not None
    assert {judge(call).status for call in state.calls} == {"ok"}
    assert place.counting.requests == REQUESTS


def test_killed_while_a_tool_runs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    place = Place(home, 1)
    go_on = home / "work" / "go-on"
    write = "echo 1 >> done.txt; until [ -e go-on ]; do sleep 0.01; done"
    place.counting.next = 2
    place.server.then(calls(("terminal", {"command": write}), ids=["1"]))
    with place.server:
        running = place.command.start(*TASK, **place.environ)
        until(lambda: written(home) or not running.running)
        assert running.running, running.wait().stderr
        running.signal(signal.SIGKILL)
        running.wait()
        go_on.touch()
        state = found(place)
        assert state is not None
        assert (state.open_calls, state.is_answered) == (["1"], False)
        resume_to_the_end(place, state)


@pytest.mark.soak
def test_killed_once(tmp_path: Path) -> None:
    chance = random.Random(5)
    at_a_request = [(requests, 0.0) for requests in range(1, REQUESTS)]
    before_the_first = [(0, chance.uniform(0, 0.3)) for _ in range(3)]
    after_a_request = [
        (chance.randint(1, REQUESTS), chance.uniform(0, 0.3)) for _ in range(REQUESTS)
    ]
    reached = set()
    moments = [*at_a_request, *before_the_first, *after_a_request]
    for number, (requests, later_s) in enumerate(moments):
        place = Place(tmp_path / f"home{number}", NUMBERS)
        with place.server:
            place.kill(*TASK, requests=requests, later_s=later_s)
            state = found(place)
            reached.add(0 if state is None else len(state.calls) - len(state.open_calls))
            if state is not None and not state.is_answered:
                resume_to_the_end(place, state)
    assert len(reached) > 4, f"the kills hit too few different moments: {reached}"


@pytest.mark.soak
def test_killed_repeatedly(tmp_path: Path) -> None:
    chance = random.Random(6)
    place = Place(tmp_path / "home", 1000)
    with place.server:
        state: Found | None = None
        asked: list[str] = []
        for _ in range(_KILLED_IN_A_ROW):
            requests = chance.randint(1, 4)
            arguments = TASK if state is None else ("run", "--resume", state.session, *TASK[2:])
            place.kill(*arguments, requests=requests, later_s=chance.uniform(0, 0.3))
            state = found(place)
            assert state is not None
            before, asked = asked, [call.id for call in state.calls]
            assert asked[: len(before)] == before
            # Another request means that the result of the previous one was received.
            assert len(asked) >= len(before) + requests - 1
        assert state is not None
        resume_to_the_end(place, state)
