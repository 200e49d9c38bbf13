"""Joining calls with their results."""

from journeyman.records import Message, Recorded, ToolCall, join_calls


def asks(position: int, *ids: str, role: str = "assistant") -> Message:
    calls = tuple(ToolCall(id=one, name=f"tool-{one}") for one in ids)
    return Message(key=f"k{position}", position=position, role=role, tool_calls=calls)


def answers(position: int, call_id: str, text: str = "") -> Message:
    return Message(
        key=f"k{position}",
        position=position,
        role="tool",
        tool_call_id=call_id,
        text=text or f"result at {position}",
    )


def results(*messages: Message) -> list[str | None]:
    return [call.result for call in join_calls(messages)]


def test_results_find_their_calls() -> None:
    # Parallel calls find their own results.
    assert results(asks(1, "a", "b"), answers(2, "b", "B"), answers(3, "a", "A")) == ["A", "B"]

    # A call without a result stays without one.
    assert results(asks(1, "a", "b"), answers(2, "b", "B")) == [None, "B"]

    # An empty result is a result.
    empty = Message(key="k2", position=2, role="tool", tool_call_id="a")
    assert results(asks(1, "a"), empty) == [""]

    # A result that stands before its call.
    assert results(answers(1, "a", "A"), asks(2, "a")) == ["A"]

    # Order comes from the positions.
    assert results(answers(3, "a", "late"), asks(2, "a"), asks(1, "b")) == [None, "late"]

    # An id used again belongs to the latest open call.
    turns = (asks(1, "a"), answers(2, "a", "1"), asks(3, "a"), answers(4, "a", "2"))
    assert results(*turns) == ["1", "2"]
    unanswered_first = (asks(1, "a"), asks(3, "a"), answers(4, "a", "2"))
    assert results(*unanswered_first) == [None, "2"]


def test_what_comes_along() -> None:
    # What is known of the call comes along.
    asking = Message(
        key="q",
        position=1,
        role="assistant",
        tool_calls=(ToolCall(id="a", name="bash", arguments='{"command": "ls"}'),),
        at=10.0,
        model="m",
        generation=2,
    )
    answer = Message(
        key="r",
        position=2,
        role="tool",
        tool_call_id="a",
        text="x",
        recorded=Recorded(exit_code=1),
        at=12.5,
    )
    (call,) = join_calls([asking, answer])
    assert (call.tool, call.arguments, call.model, call.generation) == (
        "bash",
        '{"command": "ls"}',
        "m",
        2,
    )
    assert (call.asked_at, call.answered_at) == (10.0, 12.5)
    assert (call.asked_key, call.answered_key) == ("q", "r")
    assert call.recorded == Recorded(exit_code=1)

    # A nameless call takes the name of its result.
    asking = Message(key="q", position=1, role="assistant", tool_calls=(ToolCall(id="a", name=""),))
    answer = Message(key="r", position=2, role="tool", tool_call_id="a", tool_name="bash")
    assert join_calls([asking, answer])[0].tool == "bash"

    # Calls of a simulated user are told apart.
    (call,) = join_calls([asks(1, "a", role="user"), answers(2, "a")])
    assert call.asked_by == "user"
