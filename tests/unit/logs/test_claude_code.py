import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tables import table

from journeyman.logs.claude_code import ClaudeCodeReader
from journeyman.logs.log_file import LogFile
from journeyman.outcomes.judge import judge
from journeyman.records import Fragment, Lineage, LogState, Mark, ResultFlags

READER = ClaudeCodeReader()


def line(kind, uuid, parent=None, *, session="s1", **fields):
    """Return a transcript line."""
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": session,
        "timestamp": "2026-01-01T00:00:00Z",
        "cwd": "/repo",
        "gitBranch": "main",
        "version": "2.0.1",
        "isSidechain": False,
        **fields,
    }


def user(uuid, content, parent=None, **fields):
    return line("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def answer(uuid, message_id, *blocks, parent=None, usage=None, stop=None, **fields):
    """Return a line of an answer; a string becomes a text block."""
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    message = {"id": message_id, "role": "assistant", "model": "opus", "content": content}
    if usage is not None:
        message["usage"] = usage
    return line("assistant", uuid, parent, message={**message, "stop_reason": stop}, **fields)


def call(call_id, name="Bash", **arguments):
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(uuid, call_id, content="ok", parent=None, *, tool_use_result=None, **flags):
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, **flags}
    more = {} if tool_use_result is None else {"toolUseResult": tool_use_result}
    return user(uuid, [block], parent, **more)


def boundary(uuid, **fields):
    return line("system", uuid, subtype="compact_boundary", content="Compacted", **fields)


def sidechain(one, agent=None, parent=None):
    """Move a line into a subagent sidechain."""
    named = {} if agent is None else {"agentId": agent}
    return {**one, "isSidechain": True, "parentUuid": parent, **named}


@pytest.fixture
def transcript(write, lines, read):
    """Write lines to a log and read it."""

    def transcript(*values, name="s1.jsonl"):
        return read(READER, write(name, lines(*values)))

    return transcript


def shape(reading, session="s1"):
    return [(m.role, m.kind, m.text) for m in reading.by_session[session]]


class FakeStore:
    """What a store would hold after one or more reads of a log."""

    def __init__(self):
        self.sessions = {}
        self.state = None

    def read(self, path):
        for event in READER.read(LogFile(path), self.state):
            if isinstance(event, Fragment):
                self._add(event)
            elif isinstance(event, Mark):
                # The store keeps the state as JSON.
                stored = msgspec.json.encode(event.state)
                self.state = msgspec.json.decode(stored, type=LogState)
        return self

    def _add(self, fragment):
        known = self.sessions.setdefault(
            fragment.session.id, {"facts": {}, "messages": {}, "usage": {}}
        )
        if fragment.replaces:
            known["messages"], known["usage"] = {}, {}
        facts = msgspec.structs.asdict(fragment.session)
        known["facts"].update({name: fact for name, fact in facts.items() if fact})
        known["messages"].update({message.key: message for message in fragment.messages})
        known["usage"].update({usage.key: usage for usage in fragment.usage})
        for start, end in fragment.undone:
            known["messages"] = {
                key: message
                for key, message in known["messages"].items()
                if not start <= message.position < end
            }

    def texts(self, session="s1"):
        messages = self.sessions[session]["messages"].values()
        return [message.text for message in sorted(messages, key=lambda one: one.position)]


@pytest.fixture
def import_lines(write, lines):
    def import_lines(*values):
        return FakeStore().read(write("s1.jsonl", lines(*values)))

    return import_lines


def test_the_entry_point_is_the_platform(transcript):
    reading = transcript(
        user("u1", "Fix it") | {"entrypoint": "sdk-cli"}, answer("a1", "m1", "Done")
    )
    assert reading.session.platform == "sdk-cli"
    assert transcript(user("u1", "Fix it")).session.platform == ""


class TestAnswers:
    def test_answer_split_over_several_lines(self, transcript):
        # Adjacent lines are one answer.
        reading = transcript(
            user("u1", "Fix it"),
            answer("a1", "m1", {"type": "thinking", "thinking": "Hm"}),
            answer("a2", "m1", "I look."),
            answer("a3", "m1", call("c1", command="ls"), stop="tool_use"),
        )
        _, message = reading.messages
        assert (message.key, message.text, message.reasoning) == ("a1", "I look.", "Hm")
        assert [(c.id, c.name, c.arguments) for c in message.tool_calls] == [
            ("c1", "Bash", '{"command": "ls"}')
        ]
        assert (message.model, message.finish_reason) == ("opus", "tool_use")
        assert message.at == 1767225600.0

        # Results may come in between.
        reading = transcript(
            answer("a1", "m1", call("c1")),
            result("r1", "c1", "one"),
            answer("a2", "m1", call("c2")),
            result("r2", "c2", "two"),
            answer("a3", "m2", "Done."),
        )
        assert [m.key for m in reading.messages] == ["a1", "r1", "r2", "a3"]
        assert [(c.id, c.result) for c in reading.calls()] == [("c1", "one"), ("c2", "two")]

        # A late line becomes a separate message.
        reading = transcript(
            answer("a1", "m1", "first", usage={"output_tokens": 1}),
            answer("a2", "m2", "second", usage={"output_tokens": 5}),
            answer("a3", "m1", call("c1"), usage={"output_tokens": 9}),
            result("r1", "c1"),
        )
        assert [m.key for m in reading.messages] == ["a1", "a2", "a3", "r1"]
        assert reading.calls()[0].result == "ok"
        assert {u.key: u.output_tokens for u in reading.usage} == {"m1": 9, "m2": 5}

        # Parallel calls are joined in any order.
        reading = transcript(
            answer("a1", "m1", call("c1"), call("c2")),
            answer("a2", "m1", call("c3")),
            result("r2", "c2", "two"),
            user(
                "r1",
                [
                    {"type": "tool_result", "tool_use_id": "c3", "content": "three"},
                    {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                ],
            ),
        )
        assert [c.result for c in reading.calls()] == ["one", "two", "three"]

    def test_usage_and_cost(self, transcript):
        # Usage is counted once; the last line wins.
        early = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 100}
        late = {**early, "output_tokens": 42, "cache_creation_input_tokens": 7}
        reading = transcript(
            answer("a1", "m1", "x", usage=early),
            answer("a2", "m1", "y", usage=late),
            answer("a3", "m1", "z"),
        )
        (usage,) = reading.usage
        assert (usage.key, usage.model) == ("m1", "opus")
        assert (usage.input_tokens, usage.output_tokens) == (3, 42)
        assert (usage.cache_read_tokens, usage.cache_write_tokens) == (100, 7)
        assert (usage.cost_usd, usage.cost_origin) == (None, "")

        reading = transcript(answer("a1", "m1", "x", usage={}, costUSD=0.25))
        assert (reading.usage[0].cost_usd, reading.usage[0].cost_origin) == (0.25, "claude_code")

        # API errors are harness messages without usage.
        error = answer("a1", "m1", "API Error: 529", usage={"input_tokens": 0})
        error["message"]["model"] = "<synthetic>"
        flagged = answer("a2", "m2", "Limit reached", usage={}, isApiErrorMessage=True)
        reading = transcript(user("u1", "Go"), error, flagged)
        assert [(m.kind, m.model) for m in reading.messages[1:]] == [("harness", "")] * 2
        assert reading.usage == []


class TestResults:
    def flags(self, transcript, tool_use_result=None, **block):
        reading = transcript(
            answer("a1", "m1", call("c1")),
            result("r1", "c1", tool_use_result=tool_use_result, **block),
        )
        assert reading.skips == []
        return reading.messages[-1].recorded

    def test_recorded_flags(self, transcript):
        # No flags recorded.
        assert self.flags(transcript) is None
        assert self.flags(transcript, {"stdout": "x", "interrupted": False}) is None

        assert self.flags(transcript, {"interrupted": True}) == ResultFlags(interrupted=True)

        # `success: false` is an error unless the block states otherwise.
        assert self.flags(transcript, {"success": False}) == ResultFlags(is_error=True)
        assert self.flags(transcript, {"success": False}, is_error=False) == ResultFlags(
            is_error=False
        )
        assert self.flags(transcript, {"success": True}) is None

        recorded = self.flags(transcript, {"exitCode": 2, "status": "completed"})
        assert recorded == ResultFlags(exit_code=2, status="completed")

        # An HTTP status code is not an exit code.
        recorded = self.flags(transcript, {"code": 200, "codeText": "OK", "bytes": 12})
        assert recorded == ResultFlags(details={"code": 200})

        recorded = self.flags(
            transcript,
            {
                "truncated": True,
                "userModified": True,
                "returnCodeInterpretation": "No matches found",
                "durationMs": 1500,
            },
        )
        assert recorded.details == {
            "truncated": True,
            "user_modified": True,
            "return_code_interpretation": "No matches found",
            "duration_s": 1.5,
        }

    REFUSALS = (
        ("hook", {"decision": "reject", "source": "hook", "reasonType": "hook"}, "permission-rule"),
        ("rule", {"decision": "reject", "source": "config", "reasonCode": "rule:userSettings"}, ""),
        ("rule", {"decision": "reject", "source": "user_reject", "reasonCode": "rule:x"}, ""),
        ("mode", {"decision": "reject", "source": "config", "reasonCode": "mode:plan"}, "other"),
        ("nobody", {"decision": "reject", "source": "config"}, "user-rejected"),
        ("nobody", {"decision": "reject", "source": "config", "reasonCode": "hook:PreToolUse"},
         "user-rejected"),
        ("person", {"decision": "reject", "source": "user_reject"}, "user-rejected"),
        ("person", None, "user-rejected"),
        ("rule", None, "permission-rule"),
        ("rule", "of another shape", "permission-rule"),
        ("", {"decision": "accept", "source": "config"}, None),
        ("", [7], None),
    )  # fmt: skip

    @table(("by", "permission", "denial"), REFUSALS)
    def test_newer_versions_record_who_refused(self, transcript, by, permission, denial):
        refused = result("r1", "c1", "no", is_error=True)
        fields = {"permissionDecision": permission, "toolDenialKind": denial}
        reading = transcript(answer("a1", "m1", call("c1")), {**refused, **fields})
        assert reading.skips == []
        assert reading.messages[-1].recorded == ResultFlags(is_error=True, refused_by=by)

    BARE_ERRORS = (
        ("Bash", "deploys are frozen today", "2.1.197", "refused"),
        ("Bash", "Error: use the staging branch", "2.1.197", "refused"),
        ("Bash", "[Request interrupted by user for tool use]", "2.1.197", "interrupted"),
        ("Bash", "The user doesn't want to proceed with this tool use.", "2.1.197", "refused"),
        ("Bash", "Exit code 1\ndeploys are frozen today", "2.1.197", "failed"),
        ("Bash", "<tool_use_error>deploys are frozen</tool_use_error>", "2.1.197", "failed"),
        ("Bash", "(eval):1: command not found: pytst", "1.0.44", "failed"),
        ("Read", "EISDIR: illegal operation on a directory, read", "2.1.197", "failed"),
    )

    @table(("tool", "text", "version", "status"), BARE_ERRORS)
    def test_a_command_without_an_exit_code_did_not_run(
        self, transcript, tool, text, version, status
    ):
        failed = result("r1", "c1", text, is_error=True, tool_use_result=f"Error: {text}")
        asked = answer("a1", "m1", call("c1", tool))
        (judged,) = map(judge, transcript(asked, {**failed, "version": version}).calls())
        assert judged.status == status

    @table(
        ("content", "text"),
        [
            ("plain", "plain"),
            ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
            ([{"type": "image", "source": {"type": "base64", "data": "xx"}}], "[image]"),
            ([{"type": "text", "text": "see"}, {"type": "image", "source": {}}], "see\n[image]"),
            ([], ""),
            (None, ""),
            ({"text": "odd"}, "odd"),
            (7, "7"),
        ],
    )
    def test_content_forms(self, transcript, content, text):
        assert transcript(result("r1", "c1", content)).messages[0].text == text


class TestUsers:
    def test_content(self, transcript):
        # Text and images.
        picture = {"type": "image", "source": {"type": "base64", "data": "xx"}}
        (message,) = transcript(
            user("u1", [{"type": "text", "text": "Look"}, picture, {"type": "text", "text": "!"}])
        ).messages
        assert (message.role, message.kind, message.text) == ("user", "plain", "Look\n[image]\n!")

        # Text next to a result.
        block = {"type": "tool_result", "tool_use_id": "c1", "content": "no"}
        reading = transcript(user("u1", [block, {"type": "text", "text": "Use the other one"}]))
        assert shape(reading) == [("tool", "plain", "no"), ("user", "plain", "Use the other one")]

        # No content.
        assert transcript(user("u1", None), user("u2", [])).messages == []

    @table(
        "text",
        [
            "<command-name>/clear</command-name>",
            "<command-message>review</command-message>\n<command-name>/review</command-name>",
            "<local-command-stdout>done</local-command-stdout>",
            "  <system-reminder>Be brief</system-reminder>",
            "Caveat: The messages below were generated by the user while running local commands.",
            "<local-command-caveat>Caveat: ...</local-command-caveat>",
            "<bash-input>git pull</bash-input>",
            "[Request interrupted by user for tool use]",
        ],
    )
    def test_program_output_is_harness(self, transcript, text):
        reading = transcript(user("u1", text), user("u2", [{"type": "text", "text": text}]))
        assert [m.kind for m in reading.messages] == ["harness"] * 2


class TestCompaction:
    def test_generations(self, transcript):
        # A boundary starts a new generation.
        reading = transcript(
            user("u1", "Go"),
            answer("a1", "m1", "One"),
            boundary("b1"),
            user("u2", "What was done so far", isCompactSummary=True),
            answer("a2", "m2", "Two"),
            boundary("b2"),
            user("u3", "Again", isCompactSummary=True),
            user("u4", "On"),
        )
        assert [(m.text, m.kind, m.generation) for m in reading.messages] == [
            ("Go", "plain", 0),
            ("One", "plain", 0),
            ("What was done so far", "summary", 1),
            ("Two", "plain", 1),
            ("Again", "summary", 2),
            ("On", "plain", 2),
        ]

        # A boundary affects only its own conversation.
        reading = transcript(
            user("u1", "Go"),
            sidechain(user("x1", "Search"), "x"),
            boundary("b1"),
            sidechain(answer("x2", "m1", "Found"), "x", "x1"),
            user("u2", "On"),
        )
        assert [m.generation for m in reading.by_session["s1"]] == [0, 1]
        assert [m.generation for m in reading.by_session["agent-x-s1"]] == [0, 0]

        # Other system lines are not boundaries.
        other = line("system", "y1", subtype="turn_duration", durationMs=5)
        assert transcript(user("u1", "Go"), other, user("u2", "On")).messages[1].generation == 0


class TestHooks:
    MARK = "[Journeyman 0123456789abcdef:]"

    def hook(self, uuid, **attachment):
        return line("attachment", uuid, attachment=attachment)

    def rewriting(self, call_id, arguments, **decision):
        said = {"hookEventName": "PreToolUse", "updatedInput": arguments, **decision}
        return self.hook(
            f"hook of {call_id}",
            type="hook_success",
            hookEvent="PreToolUse",
            toolUseID=call_id,
            stdout=json.dumps({"hookSpecificOutput": said}),
        )

    def test_what_ran_is_what_the_hook_made_of_it(self, transcript):
        reading = transcript(
            user("u1", "Test it"),
            answer("a1", "m1", call("c1", command="pytest")),
            self.rewriting("c1", {"command": "uv run pytest"}, permissionDecision="allow"),
            result("r1", "c1"),
            answer("a2", "m2", call("c2", command="ls"), call("c3", command="rm x")),
            self.rewriting("c3", {"command": "true"}, permissionDecision="deny"),
            self.rewriting("c2", "not an object"),
            self.hook("h", type="hook_success", hookEvent="PreToolUse", toolUseID="c2", stdout="{"),
            self.hook("h2", type="hook_success", hookEvent="Stop", toolUseID=3, stdout=None),
            self.hook("h3", type=["odd"], content={"deep": []}),
            result("r2", "c2"),
        )
        assert not reading.skips
        made = [(each.id, each.arguments, each.requested) for each in reading.calls()]
        assert made == [
            ("c1", '{"command":"uv run pytest"}', '{"command": "pytest"}'),
            ("c2", '{"command": "ls"}', ""),
            ("c3", '{"command": "rm x"}', ""),
        ]

    def test_opening_that_a_hook_added(self, transcript):
        added = {"type": "hook_additional_context", "hookEvent": "SessionStart"}
        reading = transcript(
            self.hook("h1", **added, content=["Be brief.", f"{self.MARK}\n…"]),
            user("u1", "Go"),
            self.hook("h2", **added, content=[self.MARK.replace("0123", "9999")]),
            answer("a1", "m1", "Done"),
        )
        assert reading.session.opening == "0123456789abcdef"
        assert [m.text for m in reading.messages] == ["Go", "Done"]
        quiet = transcript(self.hook("h1", **added, content=["Hi"]), user("u1", "Go"))
        assert quiet.session.opening == ""


class TestForks:
    LATER = "2026-01-02T00:00:00Z"

    def test_signs_of_a_fork(self, transcript):
        # A file that is younger than its first message.
        queued = {"type": "queue-operation", "sessionId": "s1", "timestamp": self.LATER}
        fork = transcript({"type": "mode", "sessionId": "s1"}, queued, user("u1", "Go"))
        assert fork.session.details == {"forked_at": 1_767_312_000.0}
        queued["timestamp"] = "2025-12-31T23:59:59Z"
        assert transcript(queued, user("u1", "Go")).session.details == {}

        # Newer versions name the session that sent a copied request; the last one is the parent.
        fork = transcript(
            user("u1", "Go"),
            answer("a1", "m1", "One", requestSessionId="s0"),
            user("u2", "On"),
            answer("a2", "m2", "Two", requestSessionId="s7", timestamp=self.LATER),
            user("u3", "New"),
            answer("a3", "m3", "Three", requestSessionId="s1"),
        )
        details = {"forked_from": "s7", "forked_at": 1_767_312_000.0}
        assert fork.fragments[-1].session.details == details


class TestRewind:
    START = (user("u0", "Hello"), answer("a0", "m0", "Hi", parent="u0"))

    def test_sibling_prompt_undoes_the_earlier_branch(self, import_lines):
        # Everything between the siblings was undone.
        store = import_lines(
            *self.START,
            user("u1", "Wrong", "a0"),
            answer("a1", "m1", call("c1"), parent="u1"),
            result("r1", "c1", parent="a1"),
            user("u2", "Right", "a0"),
            answer("a2", "m2", "Good", parent="u2"),
        )
        assert store.texts() == ["Hello", "Hi", "Right", "Good"]

        # A prompt without an answer is kept.
        store = import_lines(*self.START, user("u1", "And", "a0"), user("u2", "also", "a0"))
        assert store.texts() == ["Hello", "Hi", "And", "also"]

        # Rewind twice, then further back.
        lines = [
            *self.START,
            user("u1", "One", "a0"),
            answer("a1", "m1", "1"),
            user("u2", "Two", "a0"),
            answer("a2", "m2", "2"),
            user("u3", "Three", "a0"),
            answer("a3", "m3", "3"),
        ]
        assert import_lines(*lines).texts() == ["Hello", "Hi", "Three", "3"]
        lines += [user("u4", "More", "a3"), answer("a4", "m4", "4"), user("u5", "Four", "a0")]
        assert import_lines(*lines).texts() == ["Hello", "Hi", "Four"]

        # First prompts without a parent are not siblings.
        store = import_lines(user("u1", "One"), answer("a1", "m1", "1"), user("u2", "Two"))
        assert store.texts() == ["One", "1", "Two"]

        # Results and reminders with the same parent are not siblings.
        store = import_lines(
            answer("a1", "m1", call("c1"), call("c2")),
            result("r1", "c1", "one", "a1"),
            user("n1", "<system-reminder>x</system-reminder>", "a1"),
            answer("a2", "m2", "so"),
            result("r2", "c2", "two", "a1"),
            user("n2", "<system-reminder>y</system-reminder>", "a1"),
        )
        assert len(store.texts()) == 6


class TestSideChains:
    def test_named_and_unnamed_sidechains(self, transcript):
        # Named.
        reading = transcript(
            user("u1", "Go"),
            sidechain(user("x1", "Search for x"), "x"),
            sidechain(user("y1", "Search for y"), "y"),
            sidechain(answer("x2", "m1", "Found x"), "x", "x1"),
            sidechain(answer("y2", "m2", "Found y"), "y", "y1"),
        )
        assert [m.text for m in reading.by_session["agent-x-s1"]] == ["Search for x", "Found x"]
        assert [m.text for m in reading.by_session["agent-y-s1"]] == ["Search for y", "Found y"]
        assert [m.text for m in reading.by_session["s1"]] == ["Go"]
        for name in ("x", "y"):
            lineage = reading.sessions[f"agent-{name}-s1"].lineage
            assert lineage == Lineage(parent="s1", kind="subagent")
        assert reading.sessions["s1"].lineage is None

        # Unnamed, as in older versions: one session.
        reading = transcript(
            user("u1", "Go"),
            sidechain(user("x1", "Search for x")),
            sidechain(answer("x2", "m1", "Found x"), parent="x1"),
        )
        assert [m.key for m in reading.by_session["agent-side-s1"]] == ["x1", "x2"]

        # In a separate file.
        reading = transcript(
            sidechain(user("x1", "Search"), "x"),
            sidechain(answer("x2", "m1", "Found"), "x", "x1"),
            name="s1/subagents/agent-x.jsonl",
        )
        assert reading.session.id == "agent-x-s1"
        assert reading.session.lineage == Lineage(parent="s1", kind="subagent")


class TestDuplicateLines:
    def test_duplicate_ids(self, transcript):
        # A repeated line is left out.
        first, second = user("u1", "Go"), answer("a1", "m1", call("c1"))
        reading = transcript(first, second, first, second, result("r1", "c1"))
        assert [m.key for m in reading.messages] == ["u1", "a1", "r1"]
        assert len(reading.calls()) == 1
        assert reading.skips == []

        # The same id with different content is kept and reported.
        reading = transcript(user("u1", "Go"), user("u1", "Stop"), answer("a1", "m1", "Yes"))
        assert [m.text for m in reading.messages] == ["Go", "Stop", "Yes"]
        (skip,) = reading.skips
        assert skip.line == 2
        assert "u1" in skip.reason

        # The same id in another session is another line.
        reading = transcript(user("u1", "Go"), user("u1", "Go", session="s2"))
        assert [len(one) for one in reading.by_session.values()] == [1, 1]

    def test_copy_read_later_does_not_truncate_an_answer(self, write, lines, append):
        copied = [
            user("u1", "Go"),
            answer("a1", "m1", "I look."),
            answer("a2", "m1", call("c1")),
            result("r1", "c1"),
            user("u2", "Next", "r1"),
        ]
        path = write("s1.jsonl", lines(*copied))
        store = FakeStore().read(path)
        before = dict(store.sessions["s1"]["messages"])
        append(path, copied)
        assert store.read(path).sessions["s1"]["messages"] == before


class TestMalformedLines:
    def test_lone_surrogates_and_nan(self, transcript):
        reading = transcript(
            r'{"type":"user","uuid":"u1","sessionId":"s1","message":{"content":"cut \ud83d"}}',
            r'{"type":"user","uuid":"u2","sessionId":"s1","message":{"content":[{"type":'
            r'"tool_result","tool_use_id":"c","content":"x\ude00y"}]}}',
            r'{"type":"user","uuid":"u3","sessionId":"s1","message":{"content":"n"},"cost":NaN}',
        )
        assert [m.text for m in reading.messages] == ["cut ?", "x?y", "n"]
        assert reading.skips == []

    def test_invalid_utf8(self, tmp_path, read):
        start = b'{"type":"user","uuid":"%s","sessionId":"s1","message":{"content":'
        lines = [
            start % b"u1" + b'"bad \xff"}}',
            start % b"u2" + b'[{"type":"tool_result","tool_use_id":"c","content":"bad \xff"}]}}',
            start % b"u3" + b'"good"},"other":"\xff"}',
            start.replace(b"user", b"assistant") % b"u4"
            + b'[{"type":"tool_use","id":"c","name":"B","input":{"a":"\xff"}}]}}',
            start % b"u5" + b'[{"type":"tool_result","content":"x"}]},'
            b'"toolUseResult":{"status":"\xff","interrupted":true}}',
        ]
        path = tmp_path / "s1.jsonl"
        path.write_bytes(b"\n".join(lines) + b"\n")
        reading = read(READER, path)
        assert [skip.line for skip in reading.skips] == [1]
        assert [m.key for m in reading.messages] == ["u2", "u3", "u4", "u5"]
        assert reading.messages[0].text == "bad \ufffd"
        assert reading.messages[2].tool_calls[0].arguments == '{"a":"\ufffd"}'
        assert reading.messages[3].recorded.interrupted

    @table(
        ("broken", "reason"),
        [
            ({**user("x", "y"), "message": None}, "has no message"),
            ({**user("x", "y"), "sessionId": None}, "has no session id"),
            ({**user("x", "y"), "message": "text"}, "not the expected shape"),
            ({**user("x", 7)}, "not the expected shape"),
            ("[1, 2]", "not the expected shape"),
            ("null", "not the expected shape"),
            ("{broken", "not valid JSON"),
        ],
    )
    def test_broken_lines_are_reported(self, transcript, broken, reason):
        reading = transcript(user("u1", "Go"), broken, user("u2", "On"))
        assert [m.key for m in reading.messages] == ["u1", "u2"]
        (skip,) = reading.skips
        assert skip.line == 2
        assert reason in skip.reason

    def test_truncated_line_is_read_once_complete(self, write, lines, tmp_path):
        text = lines(user("u1", "Go"), answer("a1", "m1", "Yes")).text
        path = write("s1.jsonl", text[:-30])
        store = FakeStore()
        store.read(path)
        assert store.texts() == ["Go"]
        path.write_text(text)
        assert store.read(path).texts() == ["Go", "Yes"]


class TestSessions:
    def test_session_facts(self, transcript, write, lines, append):
        # The first line supplies the facts.
        reading = transcript(user("u1", "Go"), user("u2", "On", cwd="/tmp", version="9"))
        session = reading.session
        assert (session.id, session.source) == ("s1", "claude_code")
        assert (session.cwd, session.git_branch) == ("/repo", "main")
        assert session.agent == "Claude Code 2.0.1"
        assert session.log.endswith("s1.jsonl")

        # They do not change when the log grows.
        path = write("s1.jsonl", lines(user("u1", "Go")))
        store = FakeStore().read(path)
        append(path, [user("u2", "On", cwd="/tmp", gitBranch="other", version="9")])
        facts = store.read(path).sessions["s1"]["facts"]
        assert (facts["cwd"], facts["git_branch"]) == ("/repo", "main")
        assert facts["agent"] == "Claude Code 2.0.1"

        # Several sessions in one file.
        reading = transcript(user("u1", "Go"), user("v1", "Also", session="s2"), user("u2", "On"))
        assert [m.text for m in reading.by_session["s1"]] == ["Go", "On"]
        assert [m.text for m in reading.by_session["s2"]] == ["Also"]


COPIED = answer("a2", "m2", call("c2"), parent="a1")
EVERYTHING = [
    {"type": "summary", "summary": "Earlier", "leafUuid": "x"},
    user("u1", "Fix the parser — bitte schön 😀"),
    answer("a1", "m1", {"type": "thinking", "thinking": "Hm"}, usage={"output_tokens": 1}),
    answer("a1b", "m1", call("c1"), call("c1b"), usage={"output_tokens": 9}),
    result("r1", "c1", "one"),
    answer("a1c", "m1", call("c1c")),
    sidechain(user("x1", "Search")),
    sidechain(answer("x2", "mx", call("cx")), parent="x1"),
    result("r1b", "c1b", "two", is_error=True),
    sidechain(user("y1", "Search too")),
    sidechain(result("x3", "cx", "hit"), parent="x2"),
    COPIED,
    sidechain(answer("x4", "mx2", "Found"), parent="x3"),
    result("r2", "c2", "three", tool_use_result={"interrupted": True}),
    answer("a3", "m1", "late", usage={"output_tokens": 12}),
    COPIED,
    user("u2", "Wrong way", "a3"),
    answer("a4", "m4", "Going"),
    answer("a4b", "m4", call("c4")),
    sidechain(answer("z1", "mz", "Hello"), "z"),
    result("r4", "c4"),
    user("u3", "Right way", "a3", cwd="/elsewhere"),
    "{broken",
    answer("a5", "m5", "Compacting soon"),
    {"type": "custom-title", "sessionId": "s1", "customTitle": "Parser"},
    boundary("b1"),
    user("u4", "So far: nothing", isCompactSummary=True),
    sidechain(answer("z2", "mz", call("cz")), "z", "z1"),
    user("u4", "The same id"),
    user("v1", "Another session", session="s2"),
    answer("a6", "m6", "More"),
    r'{"type":"user","uuid":"u5","sessionId":"s1","parentUuid":"a6","message":{"content":"\ud83d"}}',
    sidechain(answer("y2", "my", "Found too"), parent="y1"),
    answer("a7", "m7", "End"),
    answer("a7b", "m7", "of it"),
    user("u6", "Right way after all", "a3"),
]


class TestIncrementalReading:
    def read_at_once(self, path, data):
        path.write_bytes(data)
        return FakeStore().read(path).sessions

    def test_reading_line_by_line_equals_one_read(self, tmp_path, lines):
        data = lines(*EVERYTHING).text.encode()
        path = tmp_path / "s1.jsonl"
        expected = self.read_at_once(path, data)
        store = FakeStore()
        for end in (index + 1 for index, byte in enumerate(data) if byte == ord("\n")):
            path.write_bytes(data[:end])
            store.read(path)
        assert store.sessions == expected

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_any_transcript_read_in_any_parts(self, tmp_path, lines, data):
        values = data.draw(transcripts())
        content = lines(*values).text.encode()
        path = tmp_path / "s1.jsonl"
        expected = self.read_at_once(path, content)
        splits = data.draw(st.lists(st.integers(0, len(content)), max_size=4))
        store = FakeStore()
        for split in [*sorted(splits), len(content)]:
            path.write_bytes(content[:split])
            store.read(path)
        assert store.sessions == expected


@st.composite
def transcripts(draw):
    """Draw transcript lines of every kind in any order."""
    values = []
    for number in range(draw(st.integers(1, 25))):
        uuid = f"l{number}"
        parent = draw(
            st.sampled_from([None, *(f"l{n}" for n in range(max(0, number - 6), number))])
        )
        session = draw(st.sampled_from(["s1", "s1", "s1", "s2"]))
        message_id = f"m{draw(st.integers(0, 3))}"
        place = {"parent": parent, "session": session}
        value = draw(
            st.sampled_from(
                [
                    user(uuid, f"prompt {number}", **place),
                    answer(uuid, message_id, f"answer {number}", **place),
                    answer(
                        uuid,
                        message_id,
                        call(f"c{number}"),
                        usage={"output_tokens": number},
                        **place,
                    ),
                    user(
                        uuid,
                        [{"type": "tool_result", "tool_use_id": f"c{number - 1}", "content": "ok"}],
                        **place,
                    ),
                    user(uuid, "<system-reminder>note</system-reminder>", **place),
                    boundary(uuid, session=session),
                    {"type": "progress", "sessionId": session, "uuid": uuid},
                    {"type": "custom-title", "sessionId": session, "customTitle": uuid},
                    "{broken",
                ]
            )
        )
        if isinstance(value, dict) and "isSidechain" in value:
            chain = draw(st.sampled_from(["main", "main", "named", "unnamed"]))
            if chain != "main":
                agent = draw(st.sampled_from(["x", "y"])) if chain == "named" else None
                value = sidechain(value, agent, parent)
        values.append(value)
        if draw(st.integers(0, 9)) == 0:
            again = draw(st.sampled_from(values))
            values.append(again)
    return values
