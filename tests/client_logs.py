"""Builds the logs of clients that write one event per line, as these programs write them: GitHub
Copilot CLI 1.0 and Gemini CLI 0.61.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

COPILOT_ID = "190253fe-b2bf-40c7-830e-198c9d2cc6e2"
GEMINI_ID = "4bed628e-fedb-4c3a-9867-07090ad77159"


def write_lines(path: Path, lines: Iterable[Any]) -> Path:
    """Write values one per line; text is written verbatim."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def at(second: int) -> str:
    return f"2026-11-17T22:{second // 60 % 60:02d}:{second % 60:02d}.000Z"


class CopilotLog(list[Any]):
    """The events of one session."""

    def event(self, kind: str, data: dict[str, Any], agent: str = "") -> None:
        number = len(self)
        event = {"type": kind, "data": data, "id": f"e{number}", "timestamp": at(number)}
        self.append(event | {"parentId": None} | ({"agentId": agent} if agent else {}))

    def start(self, **data: Any) -> None:
        context = {"cwd": "/work/app", "gitRoot": "/work/app", "branch": "main"}
        facts = {"sessionId": COPILOT_ID, "copilotVersion": "1.0.102", "startTime": at(0)}
        self.event("session.start", {**facts, "selectedModel": "m1", "context": context, **data})

    def prompt(self, text: str, agent: str = "", **data: Any) -> None:
        self.event("user.message", {"content": text, **data}, agent)

    def answer(
        self, text: str = "", *calls: tuple[str, str, Any], agent: str = "", **data: Any
    ) -> None:
        requests = [{"toolCallId": id_, "name": name, "arguments": a} for id_, name, a in calls]
        body = {"model": "m1", "content": text, "toolRequests": requests, **data}
        self.event("assistant.message", body, agent)

    def result(self, call: str, content: str, agent: str = "", **data: Any) -> None:
        result = {"success": True, "result": {"content": content}}
        self.event("tool.execution_complete", {"toolCallId": call, **result, **data}, agent)

    def failure(self, call: str, message: str, code: str = "failure") -> None:
        error = {"success": False, "error": {"message": message, "code": code}}
        self.event("tool.execution_complete", {"toolCallId": call, **error})

    def usage(self, agent: str = "", **data: Any) -> None:
        tokens = {"inputTokens": 1000, "outputTokens": 50, "cacheReadTokens": 400}
        body = {"model": "m1", **tokens, "cacheWriteTokens": 0, **data}
        self.event("session.usage_record", {"usage": body}, agent)


class GeminiLog(list[Any]):
    """The records of one chat."""

    def __init__(self, **header: Any) -> None:
        facts = {"sessionId": GEMINI_ID, "projectHash": "d02b", "startTime": at(0)}
        super().__init__([{**facts, "lastUpdated": at(0), "kind": "main", **header}])

    def prompt(self, text: str, id_: str = "") -> str:
        id_ = id_ or f"user-{len(self)}"
        content = [{"text": text}]
        self.append({"id": id_, "timestamp": at(len(self)), "type": "user", "content": content})
        return id_

    def answer(self, text: str, *calls: dict[str, Any], **fields: Any) -> str:
        """Add an answer as Gemini CLI does: first without its calls, then again with them, then the
        responses to them.
        """
        id_ = f"gemini-{len(self)}"
        tokens = {"input": 1000, "output": 50, "cached": 400, "thoughts": 20, "tool": 0}
        record = {"id": id_, "timestamp": at(len(self)), "type": "gemini", "content": text}
        record |= {"thoughts": [], "tokens": tokens, "model": "gemini-2.5-pro", **fields}
        self.append(record)
        self.append({"$set": {"lastUpdated": at(len(self))}})
        if calls:
            self.append({**record, "toolCalls": list(calls)})
            parts = [part for call in calls for part in call["result"]]
            self.append({"id": f"{id_}-r", "timestamp": at(9), "type": "user", "content": parts})
        return id_


def gemini_call(
    id_: str, name: str, arguments: Any, status: str = "success", **response: str
) -> dict[str, Any]:
    """Return a call of Gemini CLI with its response, `output` or `error`."""
    answer = {"functionResponse": {"id": id_, "name": name, "response": response}}
    call = {"id": id_, "name": name, "args": arguments, "status": status}
    return {**call, "result": [answer], "timestamp": at(5)}
