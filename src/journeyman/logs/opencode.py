"""Reader for opencode's database (`opencode.db`). Every step of the agent is a message with parts:
text, reasoning, tool calls with their state, and the tokens of the step. Messages that the user
reverted are omitted.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from journeyman.logs.fields import (
    as_json,
    as_text,
    json_value,
    only_object,
    only_text,
    seconds,
    whole_number,
)
from journeyman.logs.fragments import Part, in_fragments
from journeyman.logs.log_file import LogFile
from journeyman.logs.sqlite_database import (
    Database,
    has_tables,
    open_database,
    read_changed_sessions,
    row_digest,
)
from journeyman.records import (
    Fragment,
    Lineage,
    LogEvent,
    LogState,
    Message,
    ResultFlags,
    Role,
    Session,
    SessionId,
    Skip,
    ToolCall,
    Usage,
)

Row = Mapping[str, Any]

_REQUIRED_COLUMNS = {
    "session": {"id", "directory", "title", "time_created"},
    "message": {"id", "session_id", "time_created", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_INVALID_TOOL = "invalid"


class OpencodeReader:
    """Reads opencode's database of sessions."""

    name = "opencode"
    about = "opencode database (~/.local/share/opencode/opencode.db)"

    def recognises(self, log: LogFile) -> bool:
        return has_tables(log, _REQUIRED_COLUMNS)

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        with open_database(log, _REQUIRED_COLUMNS) as opened:
            database = _OpencodeDatabase(opened)
            sessions = (
                (str(row["id"]), digest, partial(_read_session, database, row, log.name))
                for row, digest in database.sessions()
            )
            yield from read_changed_sessions(log, self.name, since, sessions)


def _read_session(database: "_OpencodeDatabase", row: Row, log: str) -> Iterator[Fragment | Skip]:
    session = _session(row, database.fork_origin(row), database.last_answer(row["id"]), log)
    yield from in_fragments(session, _conversation(database, row))


class _OpencodeDatabase:
    """Queries of an open opencode.db."""

    def __init__(self, database: Database) -> None:
        self._database = database
        stamp = "max(time_updated)" if database.has("part", "time_updated") else "max(id)"
        self._stamps = {
            table: {
                row[0]: tuple(row)[1:]
                for row in database.execute(
                    f"SELECT session_id, count(*), {stamp} FROM {table} GROUP BY session_id"  # noqa: S608 - built from constants
                )
            }
            for table in ("message", "part")
        }

    def sessions(self) -> Iterator[tuple[Row, str]]:
        """Yield each session's row and a digest that changes whenever the session does."""
        for record in self._database.execute(
            "SELECT * FROM session WHERE id IS NOT NULL ORDER BY time_created, id"
        ):
            row = dict(record)
            stamps = (stamps.get(row["id"]) for stamps in self._stamps.values())
            yield row, row_digest(row, *stamps)

    def messages(self, session_id: Any) -> Iterator[Row]:
        """Yield the messages of a session in opencode's order."""
        return self._database.select(
            "message WHERE session_id = ? ORDER BY time_created, id", session_id
        )

    def parts(self, message_id: Any) -> Iterator[Row]:
        """Yield the parts of a message in the order they were written."""
        return self._database.select("part WHERE message_id = ? ORDER BY id", message_id)

    def last_answer(self, session_id: Any) -> dict[str, Any]:
        """Return the data of the last message, if the agent wrote it."""
        last = "message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 1"
        for row in self._database.select(last, session_id):
            data = only_object(json_value(row["data"]))
            return data if data.get("role") == "assistant" else {}
        return {}

    def fork_origin(self, session: Row) -> str:
        """Return the session that a fork comes from, or "". opencode records no parent: a fork's
        first messages are older than the fork itself, and equally old messages stand in the session
        it comes from.
        """
        if session.get("parent_id") or seconds(session["time_created"]) is None:
            return ""
        newest_copy = self._database.execute(
            "SELECT max(time_created) FROM message WHERE session_id = ? AND time_created < ?",
            *(session["id"], session["time_created"]),
        ).fetchone()[0]
        if newest_copy is None:
            return ""
        for row in self._database.execute(
            "SELECT session.id FROM message JOIN session ON session.id = message.session_id"
            " WHERE message.time_created = ? AND session.id != ? AND session.time_created < ?"
            " ORDER BY session.time_created DESC LIMIT 1",
            *(newest_copy, session["id"], session["time_created"]),
        ):
            return str(row[0])
        return ""


def _session(row: Row, origin: str, last_answer: dict[str, Any], log: str) -> Session:
    lineage = None
    if parent := only_text(row.get("parent_id")):
        lineage = Lineage(parent=SessionId(parent), kind="subagent")
    elif origin:
        lineage = Lineage(parent=SessionId(origin), kind="branch")
    error = only_text(only_object(last_answer.get("error")).get("name"))
    names = ("version", "project_id")
    return Session(
        id=SessionId(str(row["id"])),
        source=OpencodeReader.name,
        title=only_text(row.get("title")),
        cwd=only_text(row.get("directory")),
        agent=only_text(row.get("agent")),
        model=_model(json_value(row.get("model"))) or _model(last_answer),
        started_at=seconds(row.get("time_created")),
        ended_at=seconds(row.get("time_updated")),
        end_reason=error or only_text(last_answer.get("finish")),
        lineage=lineage,
        log=log,
        details={name: row[name] for name in names if row.get(name)},
    )


def _model(value: Any) -> str:
    """Return the model's id, which stands under another name in each kind of row."""
    fields = only_object(value)
    return only_text(fields.get("modelID")) or only_text(fields.get("id"))


def _conversation(database: _OpencodeDatabase, session: Row) -> Iterator[Part]:
    """Yield the messages and the usage of one session. Of what the user reverted, only the usage
    remains: those tokens were spent.
    """
    revert = only_object(json_value(session.get("revert")))
    position, generation, reverted = 0, 0, False
    for row in database.messages(session["id"]):
        data = only_object(json_value(row["data"]))
        role = only_text(data.get("role"))
        if role not in _ROLES:
            yield Skip(line=0, reason=f"message {row['id']} of {session['id']}: no known role")
            continue
        has_bound = str(row["id"]) == revert.get("messageID")
        reverted = reverted or (has_bound and not revert.get("partID"))
        reader = _MessageReader(row, data, position, generation)
        for part in database.parts(row["id"]):
            reverted = reverted or (has_bound and str(part["id"]) == revert.get("partID"))
            reader.add(part, reverted=reverted)
        yield from reader.finish(_ROLES[role])
        position, generation = reader.position, reader.generation


class _MessageReader:
    """Collects the parts of one message of opencode, which become one message, the results of its
    calls, and its usage. What opencode itself added to a prompt becomes a message of its own.
    """

    def __init__(self, row: Row, data: dict[str, Any], position: int, generation: int) -> None:
        self._id = str(row["id"])
        self._data = data
        self._at = seconds(row.get("time_created"))
        self.position, self.generation = position, generation
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._inserted: list[str] = []
        self._calls: list[ToolCall] = []
        self._results: list[dict[str, Any]] = []
        self._usage: list[Usage] = []
        self._skips: list[Skip] = []

    def add(self, part: Row, *, reverted: bool) -> None:
        data = json_value(part["data"])
        if not isinstance(data, dict):
            self._skips.append(Skip(line=0, reason=f"part {part['id']}: not a JSON object"))
            return
        kind = data.get("type")
        if kind == "step-finish":
            self._usage.append(self._step_usage(str(part["id"]), data))
        elif reverted:
            return
        elif kind == "text":
            texts = self._inserted if data.get("synthetic") else self._texts
            texts.append(as_text(data.get("text")))
        elif kind == "reasoning":
            self._reasoning.append(as_text(data.get("text")))
        elif kind == "tool":
            self._add_call(str(part["id"]), data)
        elif kind == "compaction":
            self.generation += 1
        elif kind == "file":
            self._texts.append(f"[file {only_text(data.get('filename'))}]")

    def _add_call(self, part_id: str, data: dict[str, Any]) -> None:
        state = only_object(data.get("state"))
        arguments = only_object(state.get("input"))
        name = only_text(data.get("tool"))
        if name == _INVALID_TOOL and only_text(arguments.get("tool")):
            # The arguments of a call that could not be made are not recorded.
            name, arguments = only_text(arguments["tool"]), {}
        call = ToolCall(
            id=only_text(data.get("callID")) or part_id, name=name, arguments=as_json(arguments)
        )
        self._calls.append(call)
        status = state.get("status")
        if status not in ("completed", "error"):
            return  # the call was still running when the database was read, or was never finished
        self._results.append(
            {
                "key": f"{part_id}:result",
                "tool_call_id": call.id,
                "tool_name": name,
                "text": as_text(state.get("output" if status == "completed" else "error")),
                "recorded": recorded_flags(only_text(data.get("tool")), state),
                "at": seconds(only_object(state.get("time")).get("end")),
            }
        )

    def _step_usage(self, part_id: str, data: dict[str, Any]) -> Usage:
        tokens = only_object(data.get("tokens"))
        cache = only_object(tokens.get("cache"))
        answer = whole_number(tokens.get("output"))
        reasoning = whole_number(tokens.get("reasoning"))
        # opencode records 0 for a model whose price it does not know.
        cost = data.get("cost") or None
        return Usage(
            key=part_id,
            model=_model(self._data),
            task="compression" if self._data.get("summary") is True else "",
            at=self._at,
            input_tokens=whole_number(tokens.get("input")),
            output_tokens=None if answer is None else answer + (reasoning or 0),
            cache_read_tokens=whole_number(cache.get("read")),
            cache_write_tokens=whole_number(cache.get("write")),
            reasoning_tokens=reasoning,
            cost_usd=cost,
            cost_origin="" if cost is None else "estimated",
        )

    def finish(self, role: Role) -> Iterator[Part]:
        """Yield everything of this message in order."""
        yield from self._skips
        yield from self._usage
        if inserted := "\n".join(filter(None, self._inserted)):
            yield self._message(
                role=role, key=f"{self._id}:inserted", text=inserted, kind="harness", at=self._at
            )
        text, reasoning = "\n".join(self._texts), "\n".join(self._reasoning)
        if text or reasoning or self._calls:
            is_answer = role == "assistant"
            yield self._message(
                role=role,
                key=self._id,
                text=text,
                kind="summary" if self._data.get("summary") is True else "plain",
                reasoning=reasoning,
                tool_calls=tuple(self._calls),
                at=self._at,
                model=_model(self._data) if is_answer else "",
                finish_reason=only_text(self._data.get("finish")),
            )
        for result in self._results:
            yield self._message(role="tool", **result)

    def _message(self, **fields: Any) -> Message:
        self.position += 1
        return Message(position=self.position, generation=self.generation, **fields)


def recorded_flags(tool: str, state: dict[str, Any]) -> ResultFlags | None:
    """Return what opencode recorded about a call. A shell command that fails is `completed`, with
    its exit code; one that was stopped has none, and its output says why.
    """
    if state.get("status") == "error" or tool == _INVALID_TOOL:
        return ResultFlags(is_error=True)
    metadata = only_object(state.get("metadata"))
    if "exit" in metadata:
        code = whole_number(metadata["exit"])
        return None if code is None else ResultFlags(exit_code=code)
    return ResultFlags(is_error=False)
