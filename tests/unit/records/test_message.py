"""Joining tool calls with their results."""

from journeyman.records import Message, ToolCall, join_calls


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
