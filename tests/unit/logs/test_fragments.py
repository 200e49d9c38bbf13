import msgspec

from journeyman.logs.fragments import JourneymanExportReader
from journeyman.logs.line_reader import FRAGMENT_MESSAGES
from journeyman.logs.log_file import LogFile
from journeyman.records import Lineage, Message, ResultFlags, Session, ToolCall, Usage
from journeyman.records.fragment import ExportedSession

READER = JourneymanExportReader()


def exported(session_id="s1", count=2):
    return ExportedSession(
        session=Session(
            id=session_id,
            source="codex",
            title="Parser",
            lineage=Lineage(parent="p", kind="branch"),
            outcome=1.0,
            tags=("a", "b"),
            details={"channel": "cli"},
            log="/elsewhere/log.jsonl",
        ),
        messages=[
            Message(
                key=f"k{n}",
                position=n,
                role="assistant",
                text="x",
                tool_calls=(ToolCall(id="c", name="t"),),
                recorded=ResultFlags(exit_code=1, details={"a": 1.5}),
                generation=1,
            )
            for n in range(count)
        ],
        usage=[Usage(key="u", input_tokens=5, cost_usd=0.1)],
    )


def export_text(*sessions):
    return "".join(msgspec.json.encode(one).decode() + "\n" for one in sessions)


def test_export_round_trip_changes_only_the_log_path(write, read):
    path = write("export.jsonl", export_text(exported("s1"), exported("s2")))
    assert READER.recognises(LogFile(path))
    reading = read(READER, path)
    for session_id in ("s1", "s2"):
        expected = exported(session_id)
        session = msgspec.structs.replace(expected.session, log=str(path))
        assert reading.sessions[session_id] == session
        assert reading.by_session[session_id] == expected.messages
    assert reading.usage == exported().usage * 2
    assert reading.skips == []


def test_long_sessions_and_broken_lines(write, read):
    # Long sessions are split into fragments.
    reading = read(
        READER, write("export.jsonl", export_text(exported(count=3 * FRAGMENT_MESSAGES)))
    )
    assert max(len(fragment.messages) for fragment in reading.fragments) <= FRAGMENT_MESSAGES
    assert [fragment.replaces for fragment in reading.fragments] == [True, False, False, False]

    # Broken lines are reported.
    broken = '{"journeyman":1,"session":{"id":"x"},"messages":[]}\n'
    path = write(
        "export.jsonl",
        export_text(exported("s1")) + broken + "[1]\n{\n" + export_text(exported("s2")),
    )
    reading = read(READER, path)
    assert list(reading.sessions) == ["s1", "s2"]
    assert [skip.line for skip in reading.skips] == [2, 3, 4]
    assert "source" in reading.skips[0].reason


def test_a_number_that_no_database_can_hold_costs_one_session(write, read):
    changes = (
        *({"position": 2**70}, {"generation": 2**70}, {"generation": 2**40}),
        *({"recorded": ResultFlags(exit_code=2**70)},),
        *({"recorded": ResultFlags(details={"a": 2**70})},),
    )
    sessions = []
    for change in changes:
        broken = exported("broken")
        message = msgspec.structs.replace(broken.messages[0], **change)
        sessions.append(msgspec.structs.replace(broken, messages=[message]))
    reading = read(READER, write("export.jsonl", export_text(*sessions, exported("s1"))))
    assert list(reading.sessions) == ["s1"]
    assert [skip.line for skip in reading.skips] == [1, 2, 3, 4, 5]
