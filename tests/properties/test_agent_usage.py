"""The store contains exactly the usage that the model reported, whatever happens to a conversation.

A conversation here is compressed, stopped, killed, resumed and reviewed, in any order. Meanwhile,
other programs add usage to the same sessions, in increments and in totals.
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
from journeyman.agent.review.rules import TextChecks
from journeyman.agent.tools.knowledge_tools import knowledge_tools
from journeyman.agent.tools.tool import Invocation, Result, Tool
from journeyman.agent.turn import FinishedTurn, ModelReplied, Step, Turn
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
    """A request and its reply, with calls and an event that interrupts it."""

    tokens: Tokens
    calls: int
    event: Event


class OtherUsage(Struct, frozen=True, kw_only=True):
    """Usage that another program reports for the session."""

    task: str
    is_total: bool
    tokens: Tokens


class TurnPlan(Struct, frozen=True, kw_only=True):
    """The rounds and the answer of a turn, and what follows it."""

    rounds: list[Round]
    answer: Tokens
    window: int | None
    review: list[Tokens]
    counts: list[OtherUsage]
    reports_total: bool


rounds = st.builds(
    Round,
    tokens=tokens,
    calls=st.integers(1, 3),
    event=st.sampled_from(
        ["", "", "", "cancelled", "interrupted", "killed", "killed_when_saved", "full", "down"]
    ),
)
turn_plans = st.builds(
    TurnPlan,
    rounds=st.lists(rounds, max_size=4),
    answer=tokens,
    window=st.none() | st.integers(400, 6_000),
    review=st.lists(tokens, max_size=3),
    counts=st.lists(
        st.builds(
            OtherUsage,
            task=st.sampled_from(["titles", "vision"]),
            is_total=st.booleans(),
            tokens=tokens,
        ),
        max_size=3,
    ),
    reports_total=st.booleans(),
)


class Killed(BaseException):
    """Stands for a killed process; a BaseException, so that no handler of errors catches it."""


class Ledger:
    """Reported usage by session and task."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], list[Usage]] = defaultdict(list)

    def sums(self) -> dict[str, dict[str, Any]]:
        """Return the sums of the known values by task, over all sessions."""
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


class ScriptedConversation:
    """A conversation with a scripted model that records its usage in a ledger."""

    def __init__(self, store: Store, folder: Path, summaries: list[Tokens]) -> None:
        self.store = store
        self.ledger = Ledger()
        self.ids: list[SessionId] = []
        self.finished: list[FinishedTurn] = []
        self.model = ScriptedModel([self._reply], repeats=True, name=MODEL)
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

    def run_turn(self, plan: TurnPlan, number: int) -> None:
        """Run a turn, resume it after each interruption, then review it and add other usage."""
        self._rounds, self._answer = iter(plan.rounds), plan.answer
        self.model.context_tokens = plan.window
        self.finished.clear()
        turn = self._until_stopped(lambda: self._run(f"Do {number}."))
        while turn is None or not turn.completed:
            self._agent = self._new_agent()
            turn = self._until_stopped(self._resume)
        if plan.review:
            self._review_turn(plan.review)
        for one in plan.counts:
            self._add_other_usage(one)
        if plan.reports_total:
            self._report_total()

    def _run(self, task: str) -> Turn:
        return self._agent.run_conversation(task, on_step=self._on_step, cancelled=self._cancelled)

    def _resume(self) -> Turn:
        first = self.ids[0]
        return self._agent.resume(first, on_step=self._on_step, cancelled=self._cancelled)

    def _until_stopped(self, start: Callable[[], Turn]) -> Turn | None:
        self._is_cancelled = False
        try:
            return start()
        except Killed:
            return None

    def _cancelled(self) -> bool:
        return self._is_cancelled

    def _reply(self, messages: Sequence[JsonObject], _tools: Sequence[JsonObject]) -> Reply:
        contents = [one["content"] for one in messages]
        if REVIEW in contents:
            return self._booked("background_review", self._review_reply())
        if contents[-1] == SUMMARISE:
            return self._booked("compression", says("So far.", next(self._summaries)))
        return self._booked("", self._next_reply())

    def _booked(self, task: str, reply: Reply) -> Reply:
        """Record a reply in the ledger; the agent is certain to receive it."""
        assert self._agent.session is not None
        key = f"{next(self._keys)}"
        entry = Usage(key=key, model=MODEL, task=task, **asdict(reply.tokens))
        self.ledger.entries[self._agent.session.id, task].append(entry)
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

    def _review_reply(self) -> Reply:
        used, key = self._review.pop(0), next(self._keys)
        if not self._review:
            return says("Nothing to keep.", used)
        return calls(("skill_view", {"name": f"s{key}"}), first=1_000_000 + key, tokens=used)

    def _on_step(self, step: Step) -> None:
        if isinstance(step, ModelReplied) and self._event == "killed_when_saved":
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
        own = knowledge_tools(self._knowledge, keep=lambda _write, _invocation: None)
        return (noting(), tool("act", self._act), *own)

    def _new_agent(self) -> Agent:
        return agent(
            self.store,
            (),
            *self._tools(),
            model=self.model,
            new_id=self._new_id,
            background_review=self,
        )

    def _new_id(self) -> SessionId:
        self.ids.append(SessionId(f"conversation{self._example}-{len(self.ids)}"))
        return self.ids[-1]

    def cancel(self) -> None:
        """Do nothing: every review has ended before the next turn begins."""

    def consider(self, finished: FinishedTurn) -> None:
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
            text_checks=TextChecks(
                similarity=lambda _text, others: [0.0] * len(others),
                find_risk=lambda _text: "",
            ),
            prices=lambda _model, _tokens: None,
            clock=lambda: 5.0,
        )
        reviewer.review(self.finished[0])

    def _add_other_usage(self, one: OtherUsage) -> None:
        assert self._agent.session is not None
        session = self._agent.session.id
        entries = self.ledger.entries[session, one.task]
        usage = Usage(key=f"k{next(self._keys)}", model=MODEL, task=one.task, **asdict(one.tokens))
        if one.is_total:
            self.store.usage.set_total(session, usage)
            entries[:] = [usage]
        else:
            self.store.usage.add(session, usage)
            entries.append(usage)

    def _report_total(self) -> None:
        """Report the usage of the session so far twice; this must not add anything."""
        assert self._agent.session is not None
        session = self._agent.session.id
        total = summed(self.ledger.entries[session, ""])
        for key in ("first", "second"):
            self.store.usage.set_total(session, Usage(key=key, model=MODEL, **total))


def check_usage(conversation: ScriptedConversation) -> None:
    """Check that the store matches the ledger, by task and in total, in one lineage."""
    sessions = conversation.store.sessions
    rows = [row for one in conversation.ids for row in sessions.usage(one)]
    expected = conversation.ledger.sums()
    assert {row.task for row in rows} == set(expected)
    for task, sums in expected.items():
        assert summed([row for row in rows if row.task == task]) == sums
    everything = [one for entries in conversation.ledger.entries.values() for one in entries]
    totals = [sessions.get(one).tokens for one in conversation.ids]
    as_usage = [Usage(key="", **asdict(total)) for total in totals]
    both = (summed(as_usage), summed(everything))
    assert all(both[0][column] == both[1][column] for column in COLUMNS)
    lineage = {one.id for one in sessions.ancestors(conversation.ids[-1])} | {conversation.ids[-1]}
    assert lineage == set(conversation.ids)


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for all examples; each example has its own sessions."""
    with Store(f"sqlite:///{tmp_path_factory.mktemp('store') / 'j.db'}") as store:
        yield store


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("knowledge")


@given(
    turn_plans=st.lists(turn_plans, min_size=1, max_size=3), summaries=st.lists(tokens, min_size=1)
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_store_matches_the_reported_usage(
    shared_store: Store, knowledge: Path, turn_plans: list[TurnPlan], summaries: list[Tokens]
) -> None:
    conversation = ScriptedConversation(shared_store, knowledge, summaries)
    for number, plan in enumerate(turn_plans):
        conversation.run_turn(plan, number)
        check_usage(conversation)


LARGE = Tokens(input_tokens=900, output_tokens=7, cost_usd=0.5)
SMALL = Tokens(input_tokens=10, cache_read_tokens=3)
UNKNOWN = Tokens()


def conversation_with(*events: Event, store: Store, knowledge: Path) -> ScriptedConversation:
    conversation = ScriptedConversation(store, knowledge, [SMALL])
    plan = TurnPlan(
        rounds=[Round(tokens=LARGE, calls=2, event=one) for one in events],
        answer=UNKNOWN,
        window=1_000,
        review=[SMALL, UNKNOWN],
        counts=[
            OtherUsage(task="titles", is_total=total, tokens=one)
            for total, one in ((False, LARGE), (True, SMALL), (True, LARGE), (False, SMALL))
        ],
        reports_total=True,
    )
    conversation.run_turn(plan, 0)
    return conversation


@table("event", ["", "cancelled", "interrupted", "killed", "killed_when_saved", "full", "down"])
def test_known_sums(shared_store: Store, knowledge: Path, event: Event) -> None:
    conversation = conversation_with("", event, "", store=shared_store, knowledge=knowledge)
    check_usage(conversation)
    assert len(conversation.ids) > 1, "nothing was compressed"
    sums = conversation.ledger.sums()
    assert set(sums) == {"", "compression", "background_review", "titles"}
    assert (sums[""]["input_tokens"], sums[""]["cost_usd"], sums[""]["api_calls"]) == (2700, 1.5, 4)
    assert sums["titles"]["input_tokens"] == 910
    assert sums["background_review"]["api_calls"] == 2
    assert sums[""]["reasoning_tokens"] is None


def test_second_total_replaces_the_first(shared_store: Store, knowledge: Path) -> None:
    conversation = conversation_with("", store=shared_store, knowledge=knowledge)
    session = conversation.ids[-1]
    for used in (LARGE, SMALL):
        total = Usage(key="", model=MODEL, task="titles", **asdict(used))
        shared_store.usage.set_total(session, total)
    titles = [row for row in shared_store.sessions.usage(session) if row.task == "titles"]
    assert summed(titles)["input_tokens"] == SMALL.input_tokens
    assert summed(titles)["output_tokens"] is None
