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


def test_parallel_calls_find_their_own_results() -> None:
    assert results(asks(1, "a", "b"), answers(2, "b", "B"), answers(3, "a", "A")) == ["A", "B"]


def test_a_call_without_a_result_stays_without_one() -> None:
    assert results(asks(1, "a", "b"), answers(2, "b", "B")) == [None, "B"]


def test_an_empty_result_is_a_result() -> None:
    empty = Message(key="k2", position=2, role="tool", tool_call_id="a")
    assert results(asks(1, "a"), empty) == [""]


def test_a_result_that_stands_before_its_call() -> None:
    assert results(answers(1, "a", "A"), asks(2, "a")) == ["A"]


def test_order_comes_from_the_positions() -> None:
    assert results(answers(3, "a", "late"), asks(2, "a"), asks(1, "b")) == [None, "late"]


def test_an_id_used_again_belongs_to_the_latest_open_call() -> None:
    turns = (asks(1, "a"), answers(2, "a", "1"), asks(3, "a"), answers(4, "a", "2"))
    assert results(*turns) == ["1", "2"]
    unanswered_first = (asks(1, "a"), asks(3, "a"), answers(4, "a", "2"))
    assert results(*unanswered_first) == [None, "2"]


def test_what_is_known_of_the_call_comes_along() -> None:
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


def test_a_nameless_call_takes_the_name_of_its_result() -> None:
    asking = Message(key="q", position=1, role="assistant", tool_calls=(ToolCall(id="a", name=""),))
    answer = Message(key="r", position=2, role="tool", tool_call_id="a", tool_name="bash")
    assert join_calls([asking, answer])[0].tool == "bash"


def test_calls_of_a_simulated_user_are_told_apart() -> None:
    (call,) = join_calls([asks(1, "a", role="user"), answers(2, "a")])
    assert call.asked_by == "user"
