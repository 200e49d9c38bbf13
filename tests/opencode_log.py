"""Builds an opencode database for tests as opencode 1.18 writes it, with a stored credential."""

import json
import sqlite3
from pathlib import Path
from typing import Any

SECRET = "sk-never-to-be-read"
_SCHEMA = """
CREATE TABLE credential (id text PRIMARY KEY, value text NOT NULL);
CREATE TABLE account (id text PRIMARY KEY, email text, access_token text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, revert text, agent text,
  model text, time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
"""
_FIRST_MS = 1_794_953_057_000


class OpencodeLog:
    """An opencode database. Ids and times grow with every row."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.executescript(_SCHEMA)
        self.insert("credential", id="c1", value=SECRET)
        self.insert("account", id="a1", email="me@example.org", access_token=SECRET)
        self._rows = 0

    def insert(self, table: str, **values: Any) -> None:
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        self.connection.execute(statement, list(values.values()))

    def next_ms(self) -> int:
        self._rows += 1
        return _FIRST_MS + self._rows

    def session(self, id_: str = "ses_1", **values: Any) -> str:
        at = self.next_ms()
        row = {
            "project_id": "global",
            "directory": "/work/app",
            "title": "A title",
            "version": "1.18.33",
            "agent": "build",
            "model": json.dumps({"id": "m1", "providerID": "standin"}),
            "time_created": at,
            "time_updated": at,
        }
        self.insert("session", id=id_, **{**row, **values})
        return id_

    def message(
        self, role: str, *parts: dict[str, Any], session: str = "ses_1", **data: Any
    ) -> str:
        at = data.pop("at", 0) or self.next_ms()
        id_ = f"msg_{self.next_ms()}"
        value = {"role": role, **({"modelID": "m1"} if role == "assistant" else {}), **data}
        row = {"session_id": session, "time_created": at, "time_updated": at}
        self.insert("message", id=id_, data=json.dumps(value), **row)
        for part in parts:
            self.part(id_, json.dumps(part), session)
        return id_

    def part(self, message: str, data: str, session: str = "ses_1") -> str:
        at = self.next_ms()
        id_ = f"prt_{at}"
        row = {"message_id": message, "session_id": session, "time_created": at}
        self.insert("part", id=id_, data=data, time_updated=at, **row)
        return id_

    def update(self, table: str, id_: str, **values: Any) -> None:
        values["time_updated"] = self.next_ms()
        changes = ", ".join(f"{name} = ?" for name in values)
        statement = f"UPDATE {table} SET {changes} WHERE id = ?"
        self.connection.execute(statement, [*values.values(), id_])


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def tool(call_id: str, name: str, arguments: dict[str, Any], **state: Any) -> dict[str, Any]:
    """Return the part of a tool call; it is `completed` unless the state says otherwise."""
    full = {"status": "completed", "input": arguments, "metadata": {}, **state}
    return {"type": "tool", "tool": name, "callID": call_id, "state": full}


def step(cost: float = 0.00267, **tokens: int) -> dict[str, Any]:
    """Return the end of a step with its tokens."""
    cache = {"read": tokens.pop("read", 400), "write": tokens.pop("write", 0)}
    counts = {"input": 600, "output": 30, "reasoning": 20, **tokens}
    return {
        "type": "step-finish",
        "reason": "stop",
        "cost": cost,
        "tokens": {**counts, "cache": cache},
    }
