import json
import sqlite3

import pytest
from tests.tables import table

from journeyman.logs.hermes import HermesReader
from journeyman.logs.log_file import LogFile
from journeyman.records import Lineage, ToolCall
from journeyman.records.errors import LogUnreadable, NotALog

READER = HermesReader()

V12 = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT,
  model_config TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL,
  ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0,
  tool_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0,
  output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0,
  cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0,
  billing_provider TEXT, billing_base_url TEXT, billing_mode TEXT, estimated_cost_usd REAL,
  actual_cost_usd REAL, cost_status TEXT, cost_source TEXT, pricing_version TEXT, title TEXT,
  api_call_count INTEGER DEFAULT 0);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
  role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT,
  timestamp REAL NOT NULL, token_count INTEGER, finish_reason TEXT, reasoning TEXT);
"""

V30 = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, created_source TEXT,
  user_id TEXT, session_key TEXT, chat_id TEXT, chat_type TEXT, thread_id TEXT,
  display_name TEXT, origin_json TEXT, expiry_finalized INTEGER DEFAULT 0, model TEXT,
  model_config TEXT, system_prompt TEXT, system_prompt_hash TEXT,
  parent_session_id TEXT REFERENCES sessions(id), started_at REAL NOT NULL, ended_at REAL,
  end_reason TEXT, message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0,
  input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0,
  cache_read_tokens INTEGER DEFAULT 0, cache_write_tokens INTEGER DEFAULT 0,
  reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, git_branch TEXT, git_repo_root TEXT,
  git_metadata_generation INTEGER NOT NULL DEFAULT 0, billing_provider TEXT,
  billing_base_url TEXT, billing_mode TEXT, estimated_cost_usd REAL, actual_cost_usd REAL,
  cost_status TEXT, cost_source TEXT, pricing_version TEXT, title TEXT, title_source TEXT,
  last_activity_at REAL, last_activity_description TEXT, last_activity_provenance TEXT,
  api_call_count INTEGER DEFAULT 0, handoff_state TEXT, handoff_platform TEXT,
  handoff_error TEXT, compression_failure_cooldown_until REAL, compression_failure_error TEXT,
  compression_fallback_streak INTEGER, compression_ineffective_count INTEGER,
  compression_recovery_deadline REAL, compression_overload_streak INTEGER, profile_name TEXT,
  transport_profile TEXT, rewind_count INTEGER DEFAULT 0, archived INTEGER DEFAULT 0,
  pinned INTEGER DEFAULT 0, hidden INTEGER DEFAULT 0, last_read_at REAL, tool_names TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
  role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT,
  effect_disposition TEXT, timestamp REAL NOT NULL, token_count INTEGER, finish_reason TEXT,
  reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT, codex_reasoning_items TEXT,
  codex_message_items TEXT, platform_message_id TEXT, observed INTEGER DEFAULT 0,
  _compressed_summary INTEGER NOT NULL DEFAULT 0, active INTEGER NOT NULL DEFAULT 1,
  compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT, display_kind TEXT,
  display_metadata TEXT, display_identity BLOB, display_order INTEGER);
CREATE TABLE session_model_usage (session_id TEXT NOT NULL, model TEXT NOT NULL,
  billing_provider TEXT NOT NULL DEFAULT '', billing_base_url TEXT NOT NULL DEFAULT '',
  billing_mode TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '',
  api_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0,
  output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0,
  cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0,
  estimated_cost_usd REAL, actual_cost_usd REAL, cost_status TEXT, cost_source TEXT,
  first_seen REAL, last_seen REAL,
  PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task));
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE "odd name" (x);
"""


class Hermes:
    """Writes a Hermes state.db."""

    def __init__(self, path, schema):
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.executescript(schema)
        self._clock = 1_767_225_600.0

    def clear(self):
        """Delete all rows before the next case."""
        rows = self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for name in {"sessions", "messages", "session_model_usage"} & {one for (one,) in rows}:
            self.connection.execute(f"DELETE FROM {name}")

    def insert(self, name, **columns):
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        statement = f"INSERT INTO {name} ({names}) VALUES ({marks})"
        return self.connection.execute(statement, tuple(columns.values())).lastrowid

    def session(self, session_id="s1", **columns):
        self.insert(
            "sessions",
            **{"id": session_id, "source": "cli", "started_at": 1_767_225_600, **columns},
        )

    def message(self, role, content=None, session_id="s1", **columns):
        self._clock += 1
        return self.insert(
            "messages",
            **{
                "session_id": session_id,
                "role": role,
                "content": content,
                "timestamp": self._clock,
                **columns,
            },
        )

    def usage(self, session_id="s1", model="m", **columns):
        self.insert("session_model_usage", session_id=session_id, model=model, **columns)

    def copy(self, row_id):
        """Archive a row and insert it again, as a compaction does with its last rows."""
        columns = "session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp"
        self.connection.execute(
            "UPDATE messages SET active = 0, compacted = 1 WHERE id = ?", (row_id,)
        )
        return self.connection.execute(
            f"INSERT INTO messages ({columns}) SELECT {columns} FROM messages WHERE id = ?",
            (row_id,),
        ).lastrowid

    def archive(self):
        self.connection.execute("UPDATE messages SET active = 0, compacted = 1 WHERE active = 1")


@pytest.fixture
def hermes(tmp_path):
    hermes = Hermes(tmp_path / "state.db", V30)
    yield hermes
    hermes.connection.close()


@pytest.fixture(params=[V12, V30], ids=["v12", "v30"])
def any_hermes(tmp_path, request):
    hermes = Hermes(tmp_path / "state.db", request.param)
    yield hermes
    hermes.connection.close()


def calls(*names, call_id="c"):
    return json.dumps(
        [
            {
                "id": f"{call_id}{index}",
                "type": "function",
                "function": {"name": name, "arguments": '{"a": 1}'},
            }
            for index, name in enumerate(names)
        ]
    )


class TestMessages:
    def test_conversation(self, any_hermes, read):
        any_hermes.session(title="Files", model="opus", ended_at=1_767_225_700, end_reason="idle")
        any_hermes.message("system", "Be helpful")
        any_hermes.message("user", "List")
        any_hermes.message(
            "assistant", "Yes", tool_calls=calls("terminal"), reasoning="Hm", finish_reason="stop"
        )
        any_hermes.message("tool", '{"exit_code": 0}', tool_call_id="c0", tool_name="terminal")
        reading = read(READER, any_hermes.path)
        session = reading.session
        assert (session.id, session.source, session.title) == ("s1", "hermes", "Files")
        assert (session.model, session.end_reason) == ("opus", "idle")
        assert session.platform == "cli"
        assert (session.started_at, session.ended_at) == (1_767_225_600.0, 1_767_225_700.0)
        assert [m.role for m in reading.messages] == ["system", "user", "assistant", "tool"]
        assert [m.key for m in reading.messages] == ["row1", "row2", "row3", "row4"]
        answer = reading.messages[2]
        assert (answer.reasoning, answer.finish_reason) == ("Hm", "stop")
        assert answer.tool_calls == (ToolCall(id="c0", name="terminal", arguments='{"a": 1}'),)
        assert reading.calls()[0].result == '{"exit_code": 0}'
        assert reading.skips == []

    def test_bookkeeping_is_dropped_and_unknown_roles_are_reported(self, hermes, read):
        hermes.session()
        hermes.message("session_meta", "{}")
        hermes.message("user", "Hi")
        hermes.message("narrator", "Meanwhile")
        hermes.message("assistant", "[SILENT]")
        reading = read(READER, hermes.path)
        assert [m.text for m in reading.messages] == ["Hi", "[SILENT]"]
        (skip,) = reading.skips
        assert skip.line == 0
        assert skip.reason == "message 3 of s1: unknown role 'narrator'"


class TestToolCalls:
    def calls(self, hermes, read, column):
        hermes.clear()
        hermes.session()
        hermes.message("assistant", "x", tool_calls=column)
        return read(READER, hermes.path)

    @table("column", ["{broken", '"text"', "7", "[" * 5000])
    def test_broken_calls_are_reported_and_text_is_kept(self, hermes, read, column):
        reading = self.calls(hermes, read, column)
        assert [skip.line for skip in reading.skips] == [0]
        assert "tool_calls" in reading.skips[0].reason
        assert [(one.text, one.tool_calls) for one in reading.messages] == [("x", ())]

    @table(
        "arguments",
        [
            {"name": "web_search", "arguments": {"q": "x"}},
            {"name": "web_search", "arguments": '{"q":"x"}'},
            {"calls": [{"name": "web_search", "arguments": {"q": "x"}}]},
        ],
    )
    def test_bridged_call_is_unwrapped(self, hermes, read, arguments):
        column = json.dumps(
            [{"id": "c", "function": {"name": "tool_call", "arguments": json.dumps(arguments)}}]
        )
        (call,) = self.calls(hermes, read, column).calls()
        assert (call.tool, json.loads(call.arguments)) == ("web_search", {"q": "x"})


class TestUndoneMessages:
    def test_undone_rows_and_copies(self, hermes, read):
        # Undone rows are left out; archived ones are kept.
        hermes.session()
        hermes.message("user", "archived", active=0, compacted=1)
        hermes.message("user", "undone", active=0)
        hermes.message("user", "live")
        assert [m.text for m in read(READER, hermes.path).messages] == ["archived", "live"]


class TestCompaction:
    SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted"

    def test_two_compactions_in_place(self, hermes, read):
        hermes.session()
        hermes.message("system", "Be helpful")
        hermes.message("user", "One")
        tail = hermes.message("assistant", "1", tool_calls=calls("terminal"))
        end = hermes.message("tool", "ok", tool_call_id="c0", tool_name="terminal")
        hermes.archive()
        hermes.message("user", self.SUMMARY + " first", _compressed_summary=1)
        tail, end = hermes.copy(tail), hermes.copy(end)
        hermes.message("user", "Two")
        last = hermes.message("assistant", "2")
        hermes.archive()
        hermes.message("user", "[CONTEXT SUMMARY]: second")
        hermes.copy(end)
        hermes.copy(last)
        hermes.message("user", "Three")
        reading = read(READER, hermes.path)
        found = [(m.text[:20], m.kind, m.generation) for m in reading.messages]
        assert found == [
            ("Be helpful", "plain", 0),
            ("One", "plain", 0),
            ("1", "plain", 0),
            ("ok", "plain", 0),
            ("[CONTEXT COMPACTION ", "summary", 1),
            ("Two", "plain", 1),
            ("2", "plain", 1),
            ("[CONTEXT SUMMARY]: s", "summary", 2),
            ("Three", "plain", 2),
        ]
        assert len(reading.calls()) == 1

    def test_summary_detection(self, hermes, read):
        # A session that begins with a summary stays in generation 0.
        hermes.session()
        hermes.message("system", "Be helpful")
        hermes.message("user", self.SUMMARY)
        hermes.message("user", "On")
        assert [m.generation for m in read(READER, hermes.path).messages] == [0, 0, 0]

        # A summary in parts.
        hermes.clear()
        hermes.session()
        hermes.message("user", "One")
        hermes.message("user", "\x00json:" + json.dumps([{"type": "text", "text": self.SUMMARY}]))
        kinds = [(m.kind, m.generation) for m in read(READER, hermes.path).messages]
        assert kinds == [("plain", 0), ("summary", 1)]

        # A result that quotes a summary is not a summary.
        hermes.clear()
        hermes.session()
        hermes.message("user", "Show the log")
        hermes.message("tool", self.SUMMARY, tool_call_id="c")
        kinds = [(m.kind, m.generation) for m in read(READER, hermes.path).messages]
        assert kinds == [("plain", 0), ("plain", 0)]


class TestCopiesWithNewTimes:
    """Hermes 0.19: a compaction copies the first rows and the last ones with new ids and new times,
    and may merge its summary into the first copy after them. Seen in real sessions.
    """

    SUMMARY = (
        "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nCount.\n\n"
        "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
    )

    def merged(self, own=""):
        return (
            f"[PRIOR CONTEXT — for reference only; not a new message]\n{own}\n\n"
            f"[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n\n{self.SUMMARY}"
        )

    def work(self, hermes, *names, session_id="s1"):
        """Add a call and its result for each name; return the rows."""
        rows = []
        for name in names:
            answer = {"tool_calls": calls("terminal", call_id=name)}
            rows.append(hermes.message("assistant", "", session_id, **answer))
            of_call = {"tool_call_id": f"{name}0", "tool_name": "terminal"}
            rows.append(hermes.message("tool", f"output of {name}", session_id, **of_call))
        return rows

    def compact(self, hermes, head, tail, *, is_merged=True, into="s1"):
        """Archive everything and copy these rows around a summary; return the copies."""
        columns = ("role", "content", "tool_call_id", "tool_calls", "tool_name")
        query = f"SELECT {', '.join(columns)} FROM messages WHERE id = ?"
        if into == "s1":
            hermes.archive()
        copies = []
        for index, row_id in enumerate((*head, *tail)):
            found = hermes.connection.execute(query, (row_id,)).fetchone()
            row = dict(zip(columns, found, strict=True))
            if index == len(head):
                if is_merged:
                    row["content"] = self.merged(row["content"])
                else:
                    hermes.message("user", self.SUMMARY, into)
            copies.append(hermes.message(row.pop("role"), row.pop("content"), into, **row))
        return copies

    def summary(self, reading):
        """The calls, results and texts by generation."""
        generations = {}
        for message in reading.messages:
            named = [call.id for call in message.tool_calls] or [message.text[:30]]
            generations.setdefault(message.generation, []).extend(named)
        return generations

    @table("is_merged", [True, False])
    def test_three_compactions(self, hermes, read, is_merged):
        hermes.clear()
        hermes.session()
        begin = [hermes.message("user", "Count.")]
        rows = self.work(hermes, "a", "b", "c")
        copies = self.compact(hermes, begin, rows[2:], is_merged=is_merged)
        rows = [*self.work(hermes, "d"), hermes.message("assistant", "Done.")]
        rows += [hermes.message("user", "yes"), *self.work(hermes, "e")]
        copies = self.compact(hermes, copies[:1], rows[2:], is_merged=is_merged)
        rows = [hermes.message("user", "yes"), *self.work(hermes, "f", "g")]
        copies = self.compact(hermes, copies[:1], rows[3:], is_merged=is_merged)
        self.work(hermes, "h")
        hermes.message("user", "yes")
        head = self.SUMMARY[:30]
        reading = read(READER, hermes.path)
        assert self.summary(reading) == {
            0: ["Count.", "a0", "output of a", "b0", "output of b", "c0", "output of c"],
            1: [head, "d0", "output of d", "Done.", "yes", "e0", "output of e"],
            2: [head, "yes", "f0", "output of f", "g0", "output of g"],
            3: [head, "h0", "output of h", "yes"],
        }
        assert [call.id for call in reading.calls()] == [f"{name}0" for name in "abcdefgh"]
        assert [m.kind for m in reading.messages].count("summary") == 3
        # Incremental reading: nothing has changed.
        assert not read(READER, hermes.path, reading.state).fragments

    def test_copies_whose_results_were_pruned(self, hermes, read):
        hermes.session()
        begin = [hermes.message("user", "Count.")]
        rows = self.work(hermes, "a", "b")
        copies = self.compact(hermes, begin, rows)
        stub = "[Duplicate tool output — same content as a more recent call]"
        hermes.connection.execute("UPDATE messages SET content = ? WHERE id = ?", (stub, copies[2]))
        self.work(hermes, "c")
        reading = read(READER, hermes.path)
        assert [call.result for call in reading.calls()] == [f"output of {n}" for n in "abc"]

    def test_summary_merged_into_what_was_said(self, hermes, read):
        hermes.session()
        begin = [hermes.message("user", "Count."), hermes.message("assistant", "Which?")]
        tail = [hermes.message("user", "All."), hermes.message("assistant", "Fine.")]
        self.compact(hermes, begin, tail)
        hermes.message("user", "All.")
        shown = [(m.role, m.text[:20]) for m in read(READER, hermes.path).messages]
        assert shown == [
            ("user", "Count."),
            ("assistant", "Which?"),
            ("user", "All."),
            ("assistant", "Fine."),
            ("user", self.SUMMARY[:20]),
            ("user", "All."),
        ]

    def test_undoing_a_copy_undoes_its_original(self, hermes, read):
        hermes.session()
        begin = [hermes.message("user", "Count.")]
        rows = self.work(hermes, "a", "b")
        copies = self.compact(hermes, begin, rows)
        undo = "UPDATE messages SET active = 0 WHERE id >= ?"
        hermes.connection.execute(undo, (copies[-2],))
        assert [call.id for call in read(READER, hermes.path).calls()] == ["a0"]


class TestOpening:
    MARK = "[Journeyman 0123456789abcdef:]"

    def test_opening_in_what_the_model_got(self, hermes, read):
        hermes.session()
        hermes.message("user", "Go", api_content=f"Go\n\n{self.MARK}\n…")
        hermes.session("s2")
        hermes.message("user", "Go", "s2", api_content="Go\n\nIt is Monday.")
        sessions = read(READER, hermes.path).sessions
        assert [sessions[id_].opening for id_ in ("s1", "s2")] == ["0123456789abcdef", ""]
        assert "Journeyman" not in str(read(READER, hermes.path).messages)


class TestLineage:
    def lineage(self, hermes, read, *, parent="p", parent_end=None, marks=None, source="cli"):
        hermes.clear()
        if parent == "p":
            hermes.session("p", end_reason=parent_end)
        hermes.session(
            "child",
            parent_session_id=parent,
            source=source,
            model_config=json.dumps({"provider": "x", **(marks or {})}),
        )
        return read(READER, hermes.path).sessions["child"].lineage

    @table(
        ("facts", "kind"),
        [
            ({"marks": {"_branched_from": "p"}, "parent_end": "compression"}, "branch"),
            ({"marks": {"_delegate_from": "p"}, "parent_end": "compression"}, "subagent"),
            ({"marks": {"_reset_from": "p"}, "parent_end": "compression"}, "reset"),
            ({"parent_end": "compression"}, "compression"),
            ({"source": "subagent"}, "subagent"),
            ({"source": "tool", "parent_end": "compression"}, "unknown"),
            ({"parent_end": "idle"}, "unknown"),
        ],
    )
    def test_kinds(self, any_hermes, read, facts, kind):
        assert self.lineage(any_hermes, read, **facts) == Lineage(parent="p", kind=kind)

    def test_inherited_missing_and_circular_parents(self, hermes, read):
        # An inherited mark does not count.
        marks = {"_branched_from": "grandparent", "_delegate_from": "other"}
        found = self.lineage(hermes, read, marks=marks, parent_end="compression")
        assert found.kind == "compression"

        # The parent is missing.
        hermes.clear()
        assert self.lineage(hermes, read, parent="gone") == Lineage(parent="gone", kind="unknown")
        for parent in (None, "", "child"):
            assert self.lineage(hermes, read, parent=parent) is None

        # Circular parents.
        hermes.clear()
        hermes.session("a", parent_session_id="b", end_reason="compression")
        hermes.session("b", parent_session_id="a", end_reason="compression")
        sessions = read(READER, hermes.path).sessions
        assert {name: session.lineage.parent for name, session in sessions.items()} == {
            "a": "b",
            "b": "a",
        }


class TestUsage:
    def test_session_counters(self, any_hermes, read):
        any_hermes.session(
            model="opus",
            input_tokens=6,
            output_tokens=50,
            cache_read_tokens=9000,
            api_call_count=3,
            estimated_cost_usd=0.5,
        )
        (usage,) = read(READER, any_hermes.path).usage
        assert (usage.model, usage.task, usage.api_calls) == ("opus", "", 3)
        assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (6, 50, 9000)
        assert (usage.cost_usd, usage.cost_origin) == (0.5, "estimated")

    def test_several_models_and_side_tasks(self, hermes, read):
        # Side tasks are added.
        hermes.session(model="opus", input_tokens=100, output_tokens=10)
        hermes.usage(model="opus", input_tokens=100, output_tokens=10)
        hermes.usage(model="mini", task="compression", input_tokens=70)
        hermes.usage(model="mini", task="title_generation", input_tokens=5)
        hermes.usage(model="mini", task="vision")
        usage = read(READER, hermes.path).usage
        assert sorted((u.task, u.model, u.input_tokens) for u in usage) == [
            ("", "opus", 100),
            ("compression", "mini", 70),
            ("title_generation", "mini", 5),
        ]

        # Rows per model replace the session total.
        hermes.clear()
        hermes.session(model="b", input_tokens=30)
        hermes.usage(model="a", input_tokens=10)
        hermes.usage(model="b", input_tokens=20)
        assert [(u.model, u.input_tokens) for u in read(READER, hermes.path).usage] == [
            ("a", 10),
            ("b", 20),
        ]

        # Unless the session total is higher.
        hermes.clear()
        hermes.session(model="b", input_tokens=1000)
        hermes.usage(model="b", input_tokens=20)
        hermes.usage(model="mini", task="vision", input_tokens=3)
        assert [(u.model, u.input_tokens) for u in read(READER, hermes.path).usage] == [
            ("b", 1000),
            ("mini", 3),
        ]

        # Rows that differ only in billing stay separate.
        hermes.clear()
        for mode in ("key", "plan"):
            hermes.usage(billing_mode=mode, input_tokens=10)
        hermes.session()
        usage = read(READER, hermes.path).usage
        assert len({u.key for u in usage}) == 2


class TestIncrementalReading:
    @pytest.fixture
    def three_sessions(self, any_hermes):
        for name in ("s1", "s2", "s3"):
            any_hermes.session(name, title=name)
            any_hermes.message("user", "Hi", name)
        return any_hermes

    def changed(self, hermes, read, state):
        return sorted(read(READER, hermes.path, state).sessions)

    def test_only_changed_sessions_are_read(self, three_sessions, read):
        # Nothing changed.
        state = read(READER, three_sessions.path).state
        assert self.changed(three_sessions, read, state) == []
        assert read(READER, three_sessions.path, state).state.memory == state.memory

        # Only the session with a new row.
        state = read(READER, three_sessions.path).state
        three_sessions.message("assistant", "Hello", "s2")
        again = read(READER, three_sessions.path, state)
        assert list(again.sessions) == ["s2"]
        assert [m.text for m in again.messages] == ["Hi", "Hello"]
        assert again.fragments[0].replaces

        # A changed title.
        state = read(READER, three_sessions.path).state
        three_sessions.connection.execute("UPDATE sessions SET title = 'New' WHERE id = 's3'")
        assert self.changed(three_sessions, read, state) == ["s3"]

        # The end of the parent changes the child.
        three_sessions.connection.execute(
            "UPDATE sessions SET parent_session_id = 's1' WHERE id = 's2'"
        )
        state = read(READER, three_sessions.path).state
        three_sessions.connection.execute(
            "UPDATE sessions SET end_reason = 'compression' WHERE id = 's1'"
        )
        again = read(READER, three_sessions.path, state)
        assert sorted(again.sessions) == ["s1", "s2"]
        assert again.sessions["s2"].lineage.kind == "compression"

    def test_undone_rows_and_side_tasks_count_as_changes(self, hermes, read):
        # An undone row.
        hermes.session()
        row = hermes.message("user", "Hi")
        state = read(READER, hermes.path).state
        hermes.connection.execute("UPDATE messages SET active = 0 WHERE id = ?", (row,))
        again = read(READER, hermes.path, state)
        assert (list(again.sessions), again.messages) == (["s1"], [])

        # A side task, then its cost.
        hermes.clear()
        hermes.session()
        state = read(READER, hermes.path).state
        hermes.usage(task="vision", input_tokens=1)
        reading = read(READER, hermes.path, state)
        assert list(reading.sessions) == ["s1"]
        hermes.connection.execute("UPDATE session_model_usage SET actual_cost_usd = 0.5")
        assert self.changed(hermes, read, reading.state) == ["s1"]

    def test_progress_is_marked_while_reading(self, hermes):
        hermes.connection.execute("BEGIN")
        for number in range(450):
            hermes.session(f"s{number}")
        hermes.connection.execute("COMMIT")
        events = list(READER.read(LogFile(hermes.path), None))
        marks = [event.state for event in events if not hasattr(event, "session")]
        assert [len(state.memory["sessions"]) for state in marks] == [200, 400, 450]
        rest = list(READER.read(LogFile(hermes.path), marks[1]))
        assert len([event for event in rest if hasattr(event, "session")]) == 50


class TestDatabaseFile:
    def files(self, hermes):
        kept = {}
        for path in sorted(hermes.path.parent.iterdir()):
            if not path.name.endswith(("-wal", "-shm")):
                kept[path.name] = path.read_bytes()
        return kept

    def test_uncommitted_rows_are_not_read(self, any_hermes, read):
        any_hermes.connection.execute("PRAGMA journal_mode = WAL")
        any_hermes.session()
        any_hermes.message("user", "committed")
        any_hermes.connection.execute("BEGIN IMMEDIATE")
        any_hermes.message("user", "not yet")
        before = self.files(any_hermes)
        reading = read(READER, any_hermes.path)
        assert [m.text for m in reading.messages] == ["committed"]
        assert self.files(any_hermes) == before
        any_hermes.connection.execute("COMMIT")
        assert len(read(READER, any_hermes.path, reading.state).messages) == 2

    def test_rows_added_while_reading_wait_for_the_next_read(self, hermes, read):
        hermes.connection.execute("PRAGMA journal_mode = WAL")
        for name in ("s1", "s2"):
            hermes.session(name)
            hermes.message("user", "Hi", name)
        events = READER.read(LogFile(hermes.path), None)
        first = next(events)
        hermes.message("user", "Later", "s2")
        rest = list(events)
        assert [len(event.messages) for event in (first, *rest[:-1])] == [1, 1]
        again = read(READER, hermes.path, rest[-1].state)
        assert list(again.sessions) == ["s2"]

    def test_locked_database(self, hermes):
        hermes.session()
        hermes.connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        hermes.connection.execute("PRAGMA journal_mode = WAL")
        hermes.connection.execute("UPDATE sessions SET title = 'x'")
        with pytest.raises(LogUnreadable, match=r"state\.db: database is locked\. Another program"):
            list(READER.read(LogFile(hermes.path), None))

    def test_database_of_another_program(self, tmp_path):
        path = tmp_path / "state.db"
        connection = sqlite3.connect(path)
        connection.executescript("CREATE TABLE fonts (x); CREATE TABLE sessions (id, title);")
        connection.close()
        assert not READER.recognises(LogFile(path))
        with pytest.raises(NotALog, match="of another program"):
            list(READER.read(LogFile(path), None))

    @table("kept", [0.02, 0.1, 0.5, 0.9])
    def test_truncated_database(self, tmp_path, kept):
        hermes = Hermes(tmp_path / f"{kept}.db", V30)
        hermes.connection.execute("BEGIN")
        for number in range(40):
            hermes.session(f"s{number}")
            for _ in range(10):
                hermes.message("user", "x" * 500, f"s{number}")
        hermes.connection.execute("COMMIT")
        hermes.connection.close()
        data = hermes.path.read_bytes()
        hermes.path.write_bytes(data[: int(len(data) * kept)])
        with pytest.raises(LogUnreadable, match="complete SQLite database"):
            list(READER.read(LogFile(hermes.path), None))

    def test_corrupt_database_with_a_valid_header(self, tmp_path):
        path = tmp_path / "state.db"
        path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
        with pytest.raises(LogUnreadable, match="not a database"):
            list(READER.read(LogFile(path), None))

    def test_search_index_of_a_missing_extension(self, hermes, read):
        hermes.session()
        hermes.connection.executescript(
            """
            PRAGMA writable_schema = 1;
            INSERT INTO sqlite_master VALUES ('table', 'messages_fts', 'messages_fts', 0,
              'CREATE VIRTUAL TABLE messages_fts USING not_installed (content)');
            """
        )
        assert read(READER, hermes.path).session.id == "s1"

    def test_path_with_special_url_characters(self, tmp_path, read):
        folder = tmp_path / "50% of #1?"
        folder.mkdir()
        hermes = Hermes(folder / "state.db", V12)
        hermes.session()
        hermes.connection.close()
        assert read(READER, hermes.path).session.id == "s1"

    def test_minimal_columns(self, tmp_path, read):
        path = tmp_path / "state.db"
        connection = sqlite3.connect(path)
        connection.executescript(
            """
            CREATE TABLE sessions (id, source, started_at);
            CREATE TABLE messages (session_id, role, content, active);
            CREATE TABLE session_model_usage (session_id, output_tokens);
            INSERT INTO sessions VALUES ('s1', NULL, NULL), (NULL, 'cli', 5);
            INSERT INTO messages VALUES ('s1', 'user', 'b', 1), ('s1', 'assistant', 'a', 0),
              ('s1', 'user', 'b', 1);
            INSERT INTO session_model_usage VALUES ('s1', 7);
            """
        )
        connection.close()
        reading = read(READER, path)
        assert list(reading.sessions) == ["s1"]
        assert [m.text for m in reading.messages] == ["b", "b"]
        assert [usage.output_tokens for usage in reading.usage] == [7]
