"""Whatever happens to a conversation, the store has what the model reported: no more, no less.

A conversation here is compressed, stopped, killed, taken up again and reviewed, in any order; and
others count for the same sessions meanwhile, piece by piece and in totals.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import asdict
from tests.agents import agent, noting, tool
from tests.tables import table

from journeyman.agent.agent import Agent
from journeyman.agent.compression import INSTRUCTION as SUMMARISE
from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.review.reviewer import INSTRUCTION as REVIEW
from journeyman.agent.review.reviewer import Reviewer
from journeyman.agent.tools.knowledge_tools import knowledge_tools
from journeyman.agent.tools.tool import Invocation, Result, Tool
from journeyman.agent.turn import Finished, Replied, Step, Turn
from journeyman.gate.decision import ALLOW
from journeyman.models.model import JsonObject, Reply
from journeyman.records import SessionId, Tokens, Usage
from journeyman.records.errors import ContextFull, ModelUnavailable
from journeyman.store.store import Store
from journeyman.testing import ScriptedModel, calls, says

MODEL = "scripted"
COLUMNS = Tokens.__struct_fields__
_examples = itertools.count()

counts = st.none() | st.integers(0, 3_000)
costs = st.none() | st.integers(0, 1_000).map(lambda eighths: eighths / 8)
tokens = st.builds(
    Tokens,
    input_tokens=counts,
    output_tokens=counts,
    cache_read_tokens=counts,
    cache_write_tokens=counts,
    reasoning_tokens=counts,
    cost_usd=costs,
)

Event = Literal["", "cancelled", "interrupted", "killed", "killed_when_saved", "full", "down"]


class Round(Struct, frozen=True, kw_only=True):
    """One request and its reply: with calls, and with what happens to it."""

    tokens: Tokens
    calls: int
    event: Event


class Count(Struct, frozen=True, kw_only=True):
    """Something that others count for the session, beside the agent."""

    task: str
    is_total: bool
    tokens: Tokens


class Talk(Struct, frozen=True, kw_only=True):
    """One turn: what the user says leads to these rounds and to an answer."""

    rounds: list[Round]
    answer: Tokens
    window: int | None
    review: list[Tokens]
    counts: list[Count]
    reports_total: bool


rounds = st.builds(
    Round,
    tokens=tokens,
    calls=st.integers(1, 3),
    event=st.sampled_from(
        ["", "", "", "cancelled", "interrupted", "killed", "killed_when_saved", "full", "down"]
    ),
)
talks = st.builds(
    Talk,
    rounds=st.lists(rounds, max_size=4),
    answer=tokens,
    window=st.none() | st.integers(400, 6_000),
    review=st.lists(tokens, max_size=3),
    counts=st.lists(
        st.builds(
            Count, task=st.sampled_from(["titles", "vision"]), is_total=st.booleans(), tokens=tokens
        ),
        max_size=3,
    ),
    reports_total=st.booleans(),
)


class Killed(BaseException):
    """The end of the program, for the parts of it that would catch anything less."""


class Book:
    """What was reported, by session and task."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], list[Usage]] = defaultdict(list)

    def sums(self) -> dict[str, dict[str, Any]]:
        """By task, over all sessions: the known parts added up."""
        by_task: dict[str, list[Usage]] = defaultdict(list)
        for (_, task), entries in self.entries.items():
            by_task[task] += entries
        return {task: summed(entries) for task, entries in by_task.items() if entries}


def summed(entries: Sequence[Usage]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for column in COLUMNS:
        known = [value for one in entries if (value := getattr(one, column)) is not None]
        found[column] = sum(known) if known else None
    return found | {"api_calls": sum(one.api_calls for one in entries)}


class Life:
    """A conversation from its first turn to its last, with a model that keeps a book."""

    def __init__(self, store: Store, folder: Path, summaries: list[Tokens]) -> None:
        self.store = store
        self.book = Book()
        self.ids: list[SessionId] = []
        self.finished: list[Finished] = []
        self.model = ScriptedModel([self._line], repeats=True, name=MODEL)
        self._example = next(_examples)
        self._keys = itertools.count()
        self._knowledge = Knowledge(folder)
        self._summaries = itertools.cycle(summaries)
        self._rounds: Iterator[Round] = iter(())
        self._answer = Tokens()
        self._review: list[Tokens] = []
        self._event: Event = ""
        self._later: Round | None = None
        self._is_cancelled = False
        self._agent = self._new_agent()

    def live(self, talk: Talk, number: int) -> None:
        """One turn, taken up as often as it is interrupted, then its review and its counts."""
        self._rounds, self._answer = iter(talk.rounds), talk.answer
        self.model.context_tokens = talk.window
        self.finished.clear()
        turn = self._until_stopped(lambda: self._run(f"Do {number}."))
        while turn is None or not turn.completed:
            self._agent = self._new_agent()
            turn = self._until_stopped(self._resume)
        if talk.review:
            self._review_turn(talk.review)
        for one in talk.counts:
            self._count(one)
        if talk.reports_total:
            self._report_total()

    def _run(self, task: str) -> Turn:
        return self._agent.run_conversation(task, on_step=self._see, cancelled=self._cancelled)

    def _resume(self) -> Turn:
        first = self.ids[0]
        return self._agent.resume(first, on_step=self._see, cancelled=self._cancelled)

    def _until_stopped(self, go_on: Callable[[], Turn]) -> Turn | None:
        self._is_cancelled = False
        try:
            return go_on()
        except Killed:
            return None

    def _cancelled(self) -> bool:
        return self._is_cancelled

    def _line(self, messages: Sequence[JsonObject], _tools: Sequence[JsonObject]) -> Reply:
        said = [one["content"] for one in messages]
        if REVIEW in said:
            return self._told("background_review", self._reviewed())
        if said[-1] == SUMMARISE:
            return self._told("compression", says("So far.", next(self._summaries)))
        return self._told("", self._next_reply())

    def _told(self, task: str, reply: Reply) -> Reply:
        """Put a reply into the book; it is given for certain."""
        assert self._agent.session is not None
        key = f"{next(self._keys)}"
        entry = Usage(key=key, model=MODEL, task=task, **asdict(reply.tokens))
        self.book.entries[self._agent.session.id, task].append(entry)
        return reply

    def _next_reply(self) -> Reply:
        done = Round(tokens=self._answer, calls=0, event="")
        one, self._later = self._later or next(self._rounds, done), None
        if one.event in ("full", "down"):
            self._later = Round(tokens=one.tokens, calls=one.calls, event="")
            raise ContextFull("full") if one.event == "full" else ModelUnavailable("down")
        self._event = one.event
        self._is_cancelled = one.event == "cancelled"
        if not one.calls:
            return says("Done.", one.tokens)
        asked = [("note", {"text": str(next(self._keys))}) for _ in range(one.calls - 1)]
        first = next(self._keys) * 10 + 1_000
        return calls(*asked, ("act", {}), first=first, tokens=one.tokens)

    def _reviewed(self) -> Reply:
        used, key = self._review.pop(0), next(self._keys)
        if not self._review:
            return says("Nothing to keep.", used)
        return calls(("skill_view", {"name": f"s{key}"}), first=1_000_000 + key, tokens=used)

    def _see(self, step: Step) -> None:
        if isinstance(step, Replied) and self._event == "killed_when_saved":
            self._event = ""
            raise Killed

    def _act(self, _invocation: Invocation) -> Result:
        event, self._event = self._event, ""
        if event == "killed":
            raise Killed
        if event == "interrupted":
            raise KeyboardInterrupt
        return Result(content={"n": next(self._keys)})

    def _tools(self) -> tuple[Tool, ...]:
        knowing = knowledge_tools(self._knowledge, keep=lambda _write, _invocation: None)
        return (noting(), tool("act", self._act), *knowing)

    def _new_agent(self) -> Agent:
        return agent(
            self.store,
            (),
            *self._tools(),
            model=self.model,
            new_id=self._new_id,
            reviewing=self,
        )

    def _new_id(self) -> SessionId:
        self.ids.append(SessionId(f"life{self._example}-{len(self.ids)}"))
        return self.ids[-1]

    def cancel(self) -> None:
        """A turn begins; no review runs, because each is run to its end."""

    def consider(self, finished: Finished) -> None:
        self.finished.append(finished)

    def wait(self, timeout_s: float | None = None) -> bool:
        return timeout_s is None or True

    def _review_turn(self, used: list[Tokens]) -> None:
        self._review = [*used]
        reviewer = Reviewer(
            store=self.store,
            model=self.model,
            knowledge=self._knowledge,
            tools=self._tools(),
            decide=lambda _tool, _arguments: ALLOW,
            similarity=lambda _text, others: [0.0] * len(others),
            find_risky=lambda _text: "",
            prices=lambda _model, _tokens: None,
            clock=lambda: 5.0,
        )
        reviewer.review(self.finished[0])

    def _count(self, one: Count) -> None:
        assert self._agent.session is not None
        session = self._agent.session.id
        entries = self.book.entries[session, one.task]
        usage = Usage(key=f"k{next(self._keys)}", model=MODEL, task=one.task, **asdict(one.tokens))
        if one.is_total:
            self.store.accounts.set_total(session, usage)
            entries[:] = [usage]
        else:
            self.store.accounts.add(session, usage)
            entries.append(usage)

    def _report_total(self) -> None:
        """The engine says what the session used so far, twice: nothing is added by that."""
        assert self._agent.session is not None
        session = self._agent.session.id
        told = summed(self.book.entries[session, ""])
        for key in ("first", "second"):
            self.store.accounts.set_total(session, Usage(key=key, model=MODEL, **told))


def check(life: Life) -> None:
    """The store has what is in the book, by task and in all, in the sessions of one lineage."""
    sessions = life.store.sessions
    rows = [row for one in life.ids for row in sessions.usage(one)]
    expected = life.book.sums()
    assert {row.task for row in rows} == set(expected)
    for task, sums in expected.items():
        assert summed([row for row in rows if row.task == task]) == sums
    everything = [one for entries in life.book.entries.values() for one in entries]
    totals = [sessions.get(one).tokens for one in life.ids]
    as_usage = [Usage(key="", **asdict(total)) for total in totals]
    both = (summed(as_usage), summed(everything))
    assert all(both[0][column] == both[1][column] for column in COLUMNS)
    lineage = {one.id for one in sessions.ancestors(life.ids[-1])} | {life.ids[-1]}
    assert lineage == set(life.ids)


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all examples, each with sessions of its own."""
    with Store(f"sqlite:///{tmp_path_factory.mktemp('store') / 'j.db'}") as store:
        yield store


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("knowledge")


@given(talks=st.lists(talks, min_size=1, max_size=3), summaries=st.lists(tokens, min_size=1))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_the_store_has_what_was_reported(
    one_store: Store, knowledge: Path, talks: list[Talk], summaries: list[Tokens]
) -> None:
    life = Life(one_store, knowledge, summaries)
    for number, talk in enumerate(talks):
        life.live(talk, number)
        check(life)


LARGE = Tokens(input_tokens=900, output_tokens=7, cost_usd=0.5)
SMALL = Tokens(input_tokens=10, cache_read_tokens=3)
UNTOLD = Tokens()


def life_with(*happens: Event, store: Store, knowledge: Path) -> Life:
    life = Life(store, knowledge, [SMALL])
    talk = Talk(
        rounds=[Round(tokens=LARGE, calls=2, event=one) for one in happens],
        answer=UNTOLD,
        window=1_000,
        review=[SMALL, UNTOLD],
        counts=[
            Count(task="titles", is_total=total, tokens=one)
            for total, one in ((False, LARGE), (True, SMALL), (True, LARGE), (False, SMALL))
        ],
        reports_total=True,
    )
    life.live(talk, 0)
    return life


@table("event", ["", "cancelled", "interrupted", "killed", "killed_when_saved", "full", "down"])
def test_known_sums(one_store: Store, knowledge: Path, event: Event) -> None:
    life = life_with("", event, "", store=one_store, knowledge=knowledge)
    check(life)
    assert len(life.ids) > 1, "nothing was compressed"
    sums = life.book.sums()
    assert set(sums) == {"", "compression", "background_review", "titles"}
    assert (sums[""]["input_tokens"], sums[""]["cost_usd"], sums[""]["api_calls"]) == (2700, 1.5, 4)
    assert sums["titles"]["input_tokens"] == 910
    assert sums["background_review"]["api_calls"] == 2
    assert sums[""]["reasoning_tokens"] is None


def test_a_second_total_takes_the_place_of_the_first(one_store: Store, knowledge: Path) -> None:
    life = life_with("", store=one_store, knowledge=knowledge)
    session = life.ids[-1]
    for used in (LARGE, SMALL):
        total = Usage(key="", model=MODEL, task="titles", **asdict(used))
        one_store.accounts.set_total(session, total)
    titles = [row for row in one_store.sessions.usage(session) if row.task == "titles"]
    assert summed(titles)["input_tokens"] == SMALL.input_tokens
    assert summed(titles)["output_tokens"] is None
