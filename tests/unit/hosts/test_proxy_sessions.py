"""Which session a request belongs to, and what of it is new: conversations as agents send them."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from journeyman.hosts.proxy.requests import ModelRequest
from journeyman.hosts.proxy.sessions import (
    Conversation,
    Conversations,
    History,
    NamedSession,
    marks_of,
    named_session,
)
from journeyman.logs.chat import ChatParser
from journeyman.templates.opening import MessageForm

Raw = dict[str, Any]
TOOL = {"name": "run", "input_schema": {"type": "object"}}


def user(text: Any) -> Raw:
    return {"role": "user", "content": text}


def said(text: str) -> Raw:
    return {"role": "assistant", "content": text}


def called(id_: str) -> Raw:
    function = {"name": "run", "arguments": "{}"}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "function": function}]}


def result(id_: str, text: str = "ok") -> Raw:
    return {"role": "tool", "tool_call_id": id_, "content": text}


class Agents:
    """Agents behind one proxy. `send` returns the session of a request; `answer` ends it."""

    def __init__(self, stored: dict[str, History] | None = None) -> None:
        self.stored = stored
        self._loop = asyncio.new_event_loop()
        self._conversations = self._new()

    def _new(self) -> Conversations:
        stored = self.stored
        if stored is None:
            return Conversations("http://x", None)
        return Conversations(
            "http://x", lambda ids: {id_: stored[id_] for id_ in ids if id_ in stored}
        )

    def send(
        self,
        *messages: Raw,
        system: str = "You are an agent.",
        key: str = "k",
        form: MessageForm = "openai",
    ) -> Conversation:
        fields = {"tools": [TOOL]}
        if form == "anthropic":
            body = {"system": system, "messages": [*messages], **fields}
        else:
            body = {"messages": [{"role": "system", "content": system}, *messages], **fields}
        request = ModelRequest.read(form, json.dumps(body).encode())
        assert request is not None
        found = self._loop.run_until_complete(self._conversations.find(request, key))
        found.unread_answers.append(tuple)
        return found

    def answer(self, conversation: Conversation, sent: Sequence[Raw], message: Raw | None) -> None:
        """End a request; without a message, it failed."""
        conversation.unread_answers.pop()
        if message is None:
            return
        conversation.is_answered = True
        marks = [mark for one in sent for mark in marks_of(one)]
        conversation.history.extend(marks, marks_of(message))
        conversation.recorded.extend(marks, marks_of(message))

    def ask(self, *messages: Raw, answer: Raw, **options: Any) -> Conversation:
        conversation = self.send(*messages, **options)
        self.answer(conversation, messages, answer)
        return conversation

    def restart(self, conversation: Conversation, messages: Sequence[Raw]) -> None:
        """Forget everything but one recorded session."""
        chat, records = ChatParser(), []
        for index, message in enumerate(messages):
            records += chat.read(message, f"m{index}", len(records))
        self.stored = {conversation.id: History.stored(records)}
        self._conversations = self._new()

    def close(self) -> None:
        self._loop.close()


@pytest.fixture
def agents() -> Any:
    made = Agents()
    yield made
    made.close()


FIRST = user("fix the tests")
GONE_ON = [FIRST, called("c1"), result("c1")]


def test_a_conversation_goes_on(agents: Agents) -> None:
    one = agents.ask(FIRST, answer=called("c1"))
    assert agents.ask(*GONE_ON, answer=said("Done.")) is one
    assert agents.ask(*GONE_ON, said("Done."), user("now lint"), answer=called("c2")) is one
    # The date in a prompt changes, and a token is renewed.
    later = [*GONE_ON, said("Done."), user("now lint"), called("c2"), result("c2")]
    assert agents.ask(*later, answer=said("Clean."), system="Wednesday", key="new") is one


def test_a_failed_request_is_sent_again(agents: Agents) -> None:
    one = agents.send(FIRST)
    agents.answer(one, [FIRST], None)
    assert agents.send(FIRST) is one
    agents.answer(one, [FIRST], called("c1"))
    two = agents.send(*GONE_ON)
    agents.answer(two, GONE_ON, None)
    assert agents.send(*GONE_ON) is two is one


def test_the_same_first_request_again_is_another_session(agents: Agents) -> None:
    one = agents.ask(FIRST, answer=said("Done."))
    two = agents.ask(FIRST, answer=said("Done."))
    assert two.id != one.id
    # Each goes on by itself, also where the answers were the same words.
    assert agents.ask(FIRST, said("Done."), user("thanks"), answer=said("Welcome.")) in (one, two)


def test_the_same_words_again_throughout(agents: Agents) -> None:
    """Without calls, only what came last tells two conversations apart."""
    words = [FIRST, said("How?"), user("go on"), said("How?"), user("go on"), said("Done.")]
    turns = [words[:1], words[:3], words[:5]]
    one = [agents.ask(*turn, answer=said("How?")) for turn in turns]
    two = [agents.ask(*turn, answer=said("How?")) for turn in turns]
    assert {found.id for found in one} != {found.id for found in two}
    assert len({found.id for found in [*one, *two]}) == 2


def test_two_at_the_same_time(agents: Agents) -> None:
    one, two = agents.send(FIRST), agents.send(FIRST)
    assert one is not two
    agents.answer(one, [FIRST], called("c1"))
    agents.answer(two, [FIRST], called("d1"))
    assert agents.send(FIRST, called("d1"), result("d1")) is two
    assert agents.send(*GONE_ON) is one


def test_an_answer_that_the_proxy_has_not_read_yet(agents: Agents) -> None:
    """The copy of an answer tells which session goes on, before it is noted."""
    one, two = agents.send(FIRST), agents.send(FIRST)
    one.unread_answers[0] = lambda: marks_of(called("c1"))
    two.unread_answers[0] = lambda: marks_of(called("d1"))
    assert agents.send(*GONE_ON) is one
    assert agents.send(FIRST, called("d1"), result("d1")) is two


def test_another_agent_with_the_same_task(agents: Agents) -> None:
    """A planner and its executor differ in their prompts."""
    planner = agents.send(FIRST, system="You plan.")
    agents.answer(planner, [FIRST], None)
    assert agents.send(FIRST, system="You execute.") is not planner


def test_a_conversation_that_was_shortened(agents: Agents) -> None:
    long = [*GONE_ON, called("c2"), result("c2"), called("c3"), result("c3")]
    one = agents.ask(FIRST, answer=called("c1"))
    agents.ask(*long, answer=called("c4"))
    # The middle is gone; old results are replaced by a note.
    short = [FIRST, said("Summary: two things were tried."), called("c4"), result("c4")]
    assert agents.send(*short) is one
    assert one.recorded.first_new([marks_of(message) for message in short]) == 3
    cleared = [FIRST, called("c1"), result("c1", "[cleared]"), *long[3:], called("c4")]
    assert agents.send(*cleared, result("c4")) is one


def test_a_conversation_that_the_proxy_has_not_seen(agents: Agents) -> None:
    one = agents.ask(FIRST, answer=called("c1"))
    other = agents.ask(FIRST, called("x1"), result("x1"), answer=said("Done."))
    assert other is not one
    assert not other.recorded.first_new([()])


def test_the_answer_in_the_agents_own_form(agents: Agents) -> None:
    """An agent removes the thoughts from the text that it sends back."""
    one = agents.ask(FIRST, answer=said("<think>hm</think>Done."))
    sent = [FIRST, said("Done."), user("and now?")]
    assert agents.send(*sent) is one
    assert one.recorded.first_new([marks_of(message) for message in sent]) == 2


def test_anthropic_forms_of_the_same_messages(agents: Agents) -> None:
    """Marks for the cache move on, texts become blocks, reminders come and go."""
    cached = {"cache_control": {"type": "ephemeral"}}
    reminder = {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"}
    first = user([reminder, {"type": "text", "text": "fix the tests", **cached}])
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "run"}]}
    one = agents.ask(first, answer=use, form="anthropic")
    answered = user([{"type": "tool_result", "tool_use_id": "t1", "content": "ok", **cached}])
    assert (
        agents.ask(user("fix the tests"), use, answered, answer=said("x"), form="anthropic") is one
    )


def test_after_a_restart_a_recorded_session_goes_on(agents: Agents) -> None:
    one = agents.ask(FIRST, answer=called("c1"))
    agents.ask(*GONE_ON, answer=said("Done."))
    agents.restart(one, [*GONE_ON, said("Done.")])
    sent = [*GONE_ON, said("Done."), user("now lint")]
    found = agents.send(*sent)
    assert found.id == one.id
    assert found.recorded.first_new([marks_of(message) for message in sent]) == 4
    # The same first request begins a new one, also where earlier ones were deleted.
    two = agents.ask(FIRST, answer=called("d1"))
    assert two.id != one.id
    agents.restart(two, [FIRST, called("d1")])
    assert agents.send(FIRST).id not in (one.id, two.id)


def test_a_store_that_cannot_be_read_costs_no_session(agents: Agents) -> None:
    agents.ask(FIRST, answer=called("c1"))

    def load(ids: Sequence[str]) -> dict[str, History]:
        raise TimeoutError

    agents._conversations = Conversations("http://x", load)
    one = agents.ask(FIRST, answer=called("c1"))
    assert agents.ask(*GONE_ON, answer=said("Done.")) is one


def test_sessions_that_agents_name() -> None:
    claude = {"x-claude-code-session-id": "s1", "user-agent": "claude-cli/2.1"}
    codex = {"session-id": "s1", "thread-id": "s1", "x-codex-turn-metadata": "{}"}
    opencode = {"x-session-id": "ses_1", "user-agent": "opencode/1.18 ai-sdk"}
    assert named_session(claude) == NamedSession(host="claude-code", id="s1")
    assert named_session(codex) == NamedSession(host="codex", id="s1")
    assert named_session(opencode) == NamedSession(host="opencode", id="ses_1")
    for headers in (
        claude | {"x-claude-code-agent-id": "a1"},
        codex | {"thread-id": "t2"},
        opencode | {"x-parent-session-id": "ses_0"},
    ):
        named = named_session(headers)
        assert named is not None
        assert named.is_subagent
    assert named_session({"session-id": "s1", "x-session-id": "s2"}) is None


def test_old_sessions_are_dropped_from_memory(agents: Agents) -> None:
    for number in range(400):
        agents.ask(user(f"task {number}"), answer=said("Done."))
    assert len(agents._conversations._groups) == 300
    for _ in range(100):
        agents.ask(FIRST, answer=said("Done."))
    assert max(map(len, agents._conversations._groups.values())) == 64
