"""Round trips: messages through the store and the export, lines through the reader."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from journeyman.logs.line_reader import BadLine, Line, LineDecoder, Lines
from journeyman.logs.log_file import LogFile
from journeyman.records import (
    Fragment,
    Message,
    ResultFlags,
    Session,
    SessionId,
    ToolCall,
    join_calls,
)
from journeyman.records.fragment import ExportedSession
from journeyman.records.message import message_digest
from journeyman.store.search import call_text
from journeyman.store.store import Store

# Only text that a database can hold; the store contract tests cover the rest.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=80)
ids = st.sampled_from(["a", "b", "c", ""])
flags = st.builds(
    ResultFlags,
    is_error=st.none() | st.booleans(),
    exit_code=st.none() | st.integers(-1, 255),
    details=st.dictionaries(texts, st.booleans() | texts | st.integers(0, 9), max_size=2),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages = []
    for position in range(draw(st.integers(0, 12))):
        role = draw(st.sampled_from(["system", "user", "assistant", "tool"]))
        calls = draw(st.lists(st.builds(ToolCall, id=ids, name=texts, arguments=texts), max_size=3))
        messages.append(
            Message(
                key=f"k{position}",
                position=position * 3,
                role=role,
                text=draw(texts),
                reasoning=draw(texts),
                tool_calls=tuple(calls) if role in ("assistant", "user") else (),
                tool_call_id=draw(ids) if role == "tool" else "",
                recorded=draw(st.none() | flags) if role == "tool" else None,
                at=draw(st.none() | st.floats(0, 2e9)),
                generation=draw(st.integers(0, 3)),
            )
        )
    return messages


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(f"sqlite:///{tmp_path_factory.mktemp('store') / 'j.db'}")


@given(conversations(), st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_conversation_survives_any_fragmentation(
    shared_store: Store, messages: list[Message], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(messages)))
    session = Session(id=SessionId("s"), source="test", log="/log")
    with shared_store.writing() as writing:
        writing.add(Fragment(session=session, replaces=True))
        writing.add(Fragment(session=session, messages=tuple(messages[cut:])))
        writing.add(Fragment(session=session, messages=tuple(messages[:cut])))
        writing.finish()
    assert list(shared_store.sessions.messages("s")) == messages
    found = shared_store.sessions.get("s")
    calls = join_calls(messages)
    assert found.messages == len(messages)
    assert found.calls == len(calls)
    assert found.answered == sum(call.result is not None for call in calls)


@given(conversations())
def test_every_call_is_joined_once(messages: list[Message]) -> None:
    calls = join_calls(messages)
    assert [call.id for call in calls] == [
        call.id for message in messages for call in message.tool_calls
    ]
    used = [call.answered_key for call in calls if call.result is not None]
    assert len(used) == len(set(used))
    asked = Counter(call.id for call in calls)
    results = Counter(one.tool_call_id for one in messages if one.role == "tool")
    for call_id in asked.keys() | results.keys():
        answered = sum(call.id == call_id and call.result is not None for call in calls)
        # A result without a call id answers no call.
        expected = min(asked[call_id], results[call_id]) if call_id else 0
        assert answered == expected


@given(conversations())
def test_export_round_trip(messages: list[Message]) -> None:
    exported = ExportedSession(session=Session(id=SessionId("s"), source="t"), messages=messages)
    assert msgspec.json.decode(msgspec.json.encode(exported), type=ExportedSession) == exported


@given(conversations())
def test_message_digest_ignores_only_the_position(
    messages: list[Message],
) -> None:
    for message in messages:
        moved = msgspec.structs.replace(message, key="other", position=10**9)
        reworded = msgspec.structs.replace(message, text=message.text + "!")
        assert message_digest(moved) == message_digest(message)
        assert message_digest(reworded) != message_digest(message)


@given(st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b" ")), max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_lines_cover_the_file_and_have_correct_offsets(tmp_path: Path, lines: list[bytes]) -> None:
    content = b"".join(line + b"\n" for line in lines)
    assume(not content.startswith(b"\x1f\x8b"))  # the signature of a compressed file
    file = tmp_path / "log.jsonl"
    file.write_bytes(content)
    for line in Lines(LogFile(file), None):
        assert isinstance(line, Line)
        assert content[line.offset : line.offset + len(line.data)] == line.data
        assert line.data == lines[line.number - 1] + b"\n"


@given(st.binary(max_size=200))
def test_any_bytes_yield_a_value_or_a_reason(data: bytes) -> None:
    decoder = LineDecoder[dict[str, int]](dict[str, int])
    reason = "none"
    try:
        decoder.decode(Line(1, 0, data, True))
    except BadLine as error:
        reason = str(error)
    assert reason


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_standard_library_json_is_read(value: object) -> None:
    data = json.dumps({"value": value}).encode()
    LineDecoder[object](object).decode(Line(1, 0, data, True))


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with one call for every kind of query to meet."""
    call = ToolCall(id="c", name="Bash", arguments='{"command": "make a B 1 \u00e9"}')
    message = Message(key="m", position=1, role="assistant", text="a b", tool_calls=(call,))
    with Store(f"sqlite:///{tmp_path_factory.mktemp('searched') / 'j.db'}") as store:
        with store.writing() as writing:
            session = Session(id=SessionId("s"), source="test")
            writing.add(Fragment(session=session, messages=(message,)))
            writing.finish()
        yield store


@given(st.text(max_size=40) | st.text('ab1\u00e9"*-:() \x00', max_size=12))
def test_any_query_is_answered(searched: Store, query: str) -> None:
    for hit in searched.sessions.search(query):
        assert (hit.key, hit.message) == ("m", 1)
        assert "[" in hit.snippet


@given(st.text(max_size=200))
def test_calls_with_any_arguments_can_be_searched(arguments: str) -> None:
    text = call_text([ToolCall(id="c", name="Bash", arguments=arguments)])
    assert text is not None
    assert text.startswith("Bash")
    assert "\x00" not in text
