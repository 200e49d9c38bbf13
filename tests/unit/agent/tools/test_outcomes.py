"""The judge reads the results of real tool calls correctly, for each kind of outcome."""

import json

from tests.tables import table

from journeyman.agent.dispatch import request_confirmation_tool
from journeyman.agent.tools.search_tools import session_search_tool
from journeyman.agent.tools.tool import Invocation, Result, ToolLimits
from journeyman.agent.tools.toolbox import Toolbox, read_arguments, workspace_tools
from journeyman.outcomes.judge import judge
from journeyman.records import Call, SearchHit, SessionId
from journeyman.records.errors import StoreUnavailable

HIT = SearchHit(
    session=SessionId("s1"),
    source="hermes",
    key="m1",
    role="user",
    at=0.0,
    message=1,
    snippet="[error] here",
)


def find(query, limit):
    if query == "broken":
        raise StoreUnavailable("The database is locked. Try again later.")
    return [HIT] if query == "error" else []


def answer(question):
    return {"yes": True, "no": False}.get(question.tool)


SLOW_PATTERN = r"(a+)+$"
SHORT_TIMEOUT = ToolLimits(search_s=0.3)
CANCELLED = {"cancelled": True}

OUTCOMES = [
    # tool, arguments, status, kind
    ("terminal", {"command": "echo hello"}, "ok", ""),
    ("terminal", {"command": "true"}, "ok", ""),
    ("terminal", {"command": "echo error: none; echo failed >&2"}, "ok", ""),
    ("terminal", {"command": "cat notes.txt"}, "ok", ""),
    ("terminal", {"command": "cat gone.txt"}, "failed", "not_found"),
    ("terminal", {"command": "exit 3"}, "failed", "exit_code"),
    ("terminal", {"command": "no-such-program"}, "failed", "not_found"),
    ("terminal", {"command": "grep -n zebra notes.txt"}, "ok", "no_match"),
    ("terminal", {"command": "false || echo FAILED"}, "failed", "masked"),
    ("terminal", {"command": "echo a; sleep 30", "timeout": 0.2}, "failed", "timeout"),
    ("terminal", {"command": "echo a", **CANCELLED}, "interrupted", "cancelled"),
    ("terminal", {"command": "ls", "workdir": "/"}, "refused", "policy"),
    ("terminal", {"command": "ls", "workdir": "nowhere"}, "failed", "not_found"),
    ("terminal", {"command": "  "}, "invalid", "invalid_arguments"),
    ("terminal", {"command": "echo \0"}, "invalid", "invalid_arguments"),
    ("terminal", {"command": "echo " + "x" * 200_000}, "failed", "limit"),
    ("terminal", {"command": "x", "timeout": "soon"}, "invalid", "invalid_arguments"),
    ("execute_code", {"code": "print(6 * 7)"}, "ok", ""),
    ("execute_code", {"code": ""}, "ok", ""),
    ("execute_code", {"code": "print('Traceback (most recent call last):')"}, "ok", ""),
    ("execute_code", {"code": "1 / 0"}, "failed", "exception"),
    ("execute_code", {"code": "def"}, "failed", "syntax"),
    ("execute_code", {"code": "import sys; sys.exit(4)"}, "failed", "exit_code"),
    ("execute_code", {"code": "while True: pass", "timeout": 0.3}, "failed", "timeout"),
    ("execute_code", {"code": "print(1)", **CANCELLED}, "interrupted", "cancelled"),
    ("read_file", {"path": "notes.txt"}, "ok", ""),
    ("read_file", {"path": "empty.txt"}, "ok", ""),
    ("read_file", {"path": "report.json"}, "ok", ""),
    ("read_file", {"path": "gone.txt"}, "failed", "not_found"),
    ("read_file", {"path": "notes.txt", "offset": 99}, "failed", "error"),
    ("read_file", {"path": "folder"}, "failed", "error"),
    ("read_file", {"path": "image.png"}, "failed", "error"),
    ("read_file", {"path": "../outside.txt"}, "refused", "policy"),
    ("read_file", {"path": "a\0b"}, "invalid", "invalid_arguments"),
    ("read_file", {"path": "x" * 300}, "invalid", "invalid_arguments"),
    ("read_file", {}, "invalid", "invalid_arguments"),
    ("read_file", {"path": "notes.txt", "lines": 3}, "invalid", "invalid_arguments"),
    ("write_file", {"path": "new/a.txt", "content": "error\n"}, "ok", ""),
    ("write_file", {"path": "folder", "content": "x"}, "failed", "error"),
    ("write_file", {"path": "notes.txt/a", "content": "x"}, "failed", "error"),
    ("write_file", {"path": "/etc/journeyman", "content": "x"}, "refused", "policy"),
    ("patch", {"path": "notes.txt", "old_string": "two", "new_string": "2"}, "ok", ""),
    ("patch", {"path": "notes.txt", "old_string": "two", "new_string": "two"}, "ok", ""),
    (
        "patch",
        {"path": "notes.txt", "old_string": "twwo", "new_string": "2"},
        "failed",
        "conflict",
    ),
    ("patch", {"path": "notes.txt", "old_string": "o", "new_string": "0"}, "failed", "conflict"),
    ("patch", {"path": "notes.txt", "old_string": "", "new_string": "0"}, "failed", "conflict"),
    ("patch", {"path": "gone.txt", "old_string": "a", "new_string": "b"}, "failed", "not_found"),
    ("patch", {"path": "~/x", "old_string": "a", "new_string": "b"}, "refused", "policy"),
    ("search_files", {"pattern": "two"}, "ok", ""),
    ("search_files", {"pattern": "zebra"}, "ok", ""),
    ("search_files", {"pattern": "*.txt", "target": "files"}, "ok", ""),
    ("search_files", {"pattern": "(two"}, "invalid", "invalid_arguments"),
    ("search_files", {"pattern": "two", "path": "nowhere"}, "failed", "not_found"),
    ("search_files", {"pattern": "two", "path": ".."}, "refused", "policy"),
    ("search_files", {"pattern": SLOW_PATTERN, "limits": SHORT_TIMEOUT}, "failed", "timeout"),
    ("search_files", {"pattern": "two", **CANCELLED}, "interrupted", "cancelled"),
    ("search_files", {"pattern": "x", "target": "web"}, "invalid", "invalid_arguments"),
    ("session_search", {"query": "error"}, "ok", ""),
    ("session_search", {"query": "nothing"}, "ok", ""),
    ("session_search", {"query": " "}, "failed", "error"),
    ("session_search", {"query": "broken"}, "failed", "error"),
    ("request_confirmation", {"action": "yes", "description": "d"}, "ok", ""),
    ("request_confirmation", {"action": "no", "description": "d"}, "refused", "declined"),
    ("request_confirmation", {"action": "silence", "description": "d"}, "refused", "pending"),
    ("fly", {"to": "the moon"}, "invalid", "unknown_tool"),
]


def row_id(row):
    tool, _, status, kind = row
    return f"{tool}-{status}-{kind or 'plain'}-{OUTCOMES.index(row)}"


@table("row", OUTCOMES, ids=row_id)
def test_judge_reads_each_outcome(row, workspace, root):
    name, options, status, kind = row
    (root / "notes.txt").write_text("one\ntwo\n")
    (root / "empty.txt").touch()
    (root / "a.log").write_text("a" * 40 + "b\n")
    (root / "report.json").write_text('{"success": false, "error": "not found"}')
    (root / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (root / "folder").mkdir(exist_ok=True)
    arguments = {key: value for key, value in options.items() if key not in ("cancelled", "limits")}
    limits = options.get("limits", ToolLimits())
    toolbox = Toolbox(
        (
            *workspace_tools(workspace, limits),
            session_search_tool(find),
            request_confirmation_tool(answer),
        )
    )
    text = json.dumps(arguments)
    result = call_tool(toolbox, name, text, is_cancelled=options.get("cancelled", False))
    verdict = judge(
        Call(id="c1", tool=name, arguments=text, result=result.text, recorded=result.recorded)
    )
    assert (verdict.status, verdict.kind) == (status, kind), result.text[:500]


def call_tool(toolbox, name, text, *, is_cancelled):
    """Make a call as the agent does, from the name and text of the arguments to the result."""
    tool = toolbox.find(name)
    if tool is None:
        return toolbox.unknown(name)
    arguments = read_arguments(tool, text)
    if isinstance(arguments, Result):
        return arguments
    return tool.run(Invocation(call_id="c1", arguments=arguments, cancelled=lambda: is_cancelled))
