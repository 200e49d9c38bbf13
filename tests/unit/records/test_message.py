"""Joining tool calls with their results."""

from journeyman.records import Message, ResultFlags, ToolCall, join_calls


def call_message(position: int, *ids: str, role: str = "assistant") -> Message:
    calls = tuple(ToolCall(id=one, name=f"tool-{one}") for one in ids)
    return Message(key=f"k{position}", position=position, role=role, tool_calls=calls)


def result_message(position: int, call_id: str, text: str = "") -> Message:
    return Message(
        key=f"k{position}",
        position=position,
        role="tool",
        tool_call_id=call_id,
        text=text or f"result at {position}",
    )


def results(*messages: Message) -> list[str | None]:
    return [call.result for call in join_calls(messages)]


def test_results_are_joined_with_their_calls() -> None:
    # Parallel calls are joined with their own results.
    assert results(
        call_message(1, "a", "b"), result_message(2, "b", "B"), result_message(3, "a", "A")
    ) == ["A", "B"]

    # An unanswered call has no result.
    assert results(call_message(1, "a", "b"), result_message(2, "b", "B")) == [None, "B"]

    # An empty result is a result.
    empty = Message(key="k2", position=2, role="tool", tool_call_id="a")
    assert results(call_message(1, "a"), empty) == [""]

    # A result may precede its call.
    assert results(result_message(1, "a", "A"), call_message(2, "a")) == ["A"]

    # Order comes from the positions.
    assert results(result_message(3, "a", "late"), call_message(2, "a"), call_message(1, "b")) == [
        None,
        "late",
    ]

    # A reused id belongs to the latest open call.
    turns = (
        call_message(1, "a"),
        result_message(2, "a", "1"),
        call_message(3, "a"),
        result_message(4, "a", "2"),
    )
    assert results(*turns) == ["1", "2"]
    unanswered_first = (call_message(1, "a"), call_message(3, "a"), result_message(4, "a", "2"))
    assert results(*unanswered_first) == [None, "2"]


def test_properties_of_a_joined_call() -> None:
    request = Message(
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
        recorded=ResultFlags(exit_code=1),
        at=12.5,
    )
    (call,) = join_calls([request, answer])
    assert (call.tool, call.arguments, call.model, call.generation) == (
        "bash",
        '{"command": "ls"}',
        "m",
        2,
    )
    assert (call.asked_at, call.answered_at) == (10.0, 12.5)
    assert (call.asked_key, call.answered_key) == ("q", "r")
    assert call.recorded == ResultFlags(exit_code=1)

    # A nameless call takes the name of its result.
    request = Message(
        key="q", position=1, role="assistant", tool_calls=(ToolCall(id="a", name=""),)
    )
    answer = Message(key="r", position=2, role="tool", tool_call_id="a", tool_name="bash")
    assert join_calls([request, answer])[0].tool == "bash"

    # Calls of a simulated user are distinguished.
    (call,) = join_calls([call_message(1, "a", role="user"), result_message(2, "a")])
    assert call.asked_by == "user"
