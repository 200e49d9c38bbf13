"""The tools of each agent and what their arguments mean, as one table. An operation has the same
fields in every agent, so that a call of one can be written as a call of another.

Seen in the requests of Claude Code 2.1.197, Codex 0.166.0, Hermes Agent 0.19.0 and opencode
1.18.33; tools marked `former` belong to older versions or are offered to some models only.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Dialect = Literal["claude_code", "codex", "hermes", "opencode", "journeyman"]
"""Agents, named as the sources of their sessions."""

Operation = Literal[
    "run",
    "run_code",
    "read",
    "edit",
    "patch",
    "write",
    "search_text",
    "find_files",
    "list_files",
    "fetch",
    "search_web",
]
"""`run` is a shell command and `run_code` a Python script. `edit` replaces one text in a file;
`patch` applies a text that begins with `*** Begin Patch`."""


class ToolRow(NamedTuple):
    """One tool of one agent. `required` and `optional` map its arguments to fields. `fixed`
    arguments always have these values; `defaults` are values that absent arguments stand for.
    `dropped` arguments are known and have no counterpart elsewhere.
    """

    dialect: Dialect
    operation: Operation
    name: str
    required: Mapping[str, str]
    optional: Mapping[str, str] = {}
    fixed: Mapping[str, str] = {}
    defaults: Mapping[str, str] = {}
    dropped: tuple[str, ...] = ()
    former: bool = False

    @property
    def arguments(self) -> frozenset[str]:
        """The names of all arguments that the tool takes."""
        return frozenset((*self.required, *self.optional, *self.fixed, *self.dropped))


_SANDBOX = (
    *("justification", "prefix_rule", "sandbox_permissions"),
    "with_escalated_permissions",
)
_EDIT = {"old_string": "old", "new_string": "new"}
_LINES = {"offset": "first_line", "limit": "line_count"}
_PATTERN = {"pattern": "pattern"}
_GLOB = {"pattern": "glob"}
_PATH = {"path": "path"}
_SHELL = {"command": "command"}

TOOLS: tuple[ToolRow, ...] = (
    ToolRow(
        "claude_code",
        "run",
        "Bash",
        _SHELL,
        {"timeout": "timeout_ms", "run_in_background": "background"},
        dropped=("description", "dangerouslyDisableSandbox"),
    ),
    ToolRow("claude_code", "read", "Read", {"file_path": "path"}, {**_LINES, "pages": "pages"}),
    ToolRow(
        "claude_code", "edit", "Edit", {"file_path": "path", **_EDIT}, {"replace_all": "everywhere"}
    ),
    ToolRow("claude_code", "write", "Write", {"file_path": "path", "content": "content"}),
    ToolRow(
        "claude_code",
        "search_text",
        "Grep",
        _PATTERN,
        {
            **_PATH,
            "glob": "file_glob",
            "type": "file_type",
            "output_mode": "claude_listing",
            "-i": "ignore_case",
            "context": "context",
            "-C": "context",
            "-A": "context",
            "-B": "context",
            "head_limit": "match_count",
            "multiline": "multiline",
        },
        defaults={"output_mode": "files_with_matches"},
        dropped=("-n", "-o", "offset"),
    ),
    ToolRow("claude_code", "find_files", "Glob", _GLOB, _PATH),
    ToolRow("claude_code", "list_files", "LS", _PATH, dropped=("ignore",), former=True),
    ToolRow("claude_code", "fetch", "WebFetch", {"url": "url", "prompt": "prompt"}),
    ToolRow(
        "claude_code",
        "search_web",
        "WebSearch",
        {"query": "query"},
        {"allowed_domains": "domains", "blocked_domains": "domains"},
    ),
    ToolRow(
        "codex",
        "run",
        "exec_command",
        {"cmd": "command"},
        {"workdir": "folder", "tty": "interactive"},
        dropped=("login", "max_output_tokens", "shell", "yield_time_ms", *_SANDBOX),
    ),
    ToolRow(
        "codex",
        "run",
        "shell_command",
        _SHELL,
        {"workdir": "folder", "timeout_ms": "timeout_ms"},
        dropped=("login", *_SANDBOX),
        former=True,
    ),
    ToolRow(
        "codex",
        "run",
        "shell",
        {"command": "argv"},
        {"workdir": "folder", "timeout_ms": "timeout_ms", "timeout": "timeout_ms"},
        dropped=_SANDBOX,
        former=True,
    ),
    ToolRow(
        "codex",
        "run",
        "local_shell",
        {"command": "argv"},
        {"working_directory": "folder", "timeout_ms": "timeout_ms"},
        dropped=("type", "env", "user"),
        former=True,
    ),
    ToolRow("codex", "patch", "apply_patch", {"input": "patch"}, former=True),
    ToolRow(
        "codex",
        "read",
        "read_file",
        {"file_path": "path"},
        _LINES,
        dropped=("mode", "indentation"),
        former=True,
    ),
    ToolRow(
        "codex",
        "search_text",
        "grep_files",
        _PATTERN,
        {**_PATH, "include": "file_glob", "limit": "match_count"},
        former=True,
    ),
    ToolRow(
        "codex",
        "list_files",
        "list_dir",
        {"dir_path": "path"},
        dropped=("depth", "limit", "offset"),
        former=True,
    ),
    ToolRow(
        "hermes",
        "run",
        "terminal",
        _SHELL,
        {
            "timeout": "timeout_whole_s",
            "workdir": "folder",
            "background": "background",
            "pty": "interactive",
        },
        dropped=("notify_on_complete", "watch_patterns"),
    ),
    ToolRow("hermes", "run_code", "execute_code", {"code": "code"}),
    ToolRow(
        "hermes", "read", "read_file", _PATH, {"offset": "first_line", "limit": "lines_to_2000"}
    ),
    ToolRow(
        "hermes",
        "edit",
        "patch",
        {**_PATH, **_EDIT},
        {"replace_all": "everywhere"},
        fixed={"mode": "replace"},
        dropped=("cross_profile",),
    ),
    ToolRow(
        "hermes",
        "patch",
        "patch",
        {"patch": "patch"},
        fixed={"mode": "patch"},
        dropped=("cross_profile",),
    ),
    ToolRow(
        "hermes",
        "write",
        "write_file",
        {**_PATH, "content": "content"},
        dropped=("cross_profile",),
    ),
    ToolRow(
        "hermes",
        "search_text",
        "search_files",
        _PATTERN,
        {
            **_PATH,
            "file_glob": "file_glob",
            "limit": "match_count",
            "output_mode": "hermes_listing",
            "context": "context",
        },
        fixed={"target": "content"},
        dropped=("offset",),
    ),
    ToolRow(
        "hermes",
        "find_files",
        "search_files",
        {"pattern": "name_glob"},
        {**_PATH, "limit": "match_count"},
        fixed={"target": "files"},
        dropped=("offset", "output_mode", "context", "file_glob"),
    ),
    ToolRow("hermes", "fetch", "web_extract", {"urls": "urls"}, dropped=("char_limit",)),
    ToolRow("hermes", "search_web", "web_search", {"query": "query"}, {"limit": "result_count"}),
    ToolRow(
        "opencode",
        "run",
        "bash",
        _SHELL,
        {"timeout": "timeout_ms", "workdir": "folder"},
        dropped=("description",),
    ),
    ToolRow("opencode", "read", "read", {"filePath": "path"}, _LINES),
    ToolRow(
        "opencode",
        "edit",
        "edit",
        {"filePath": "path", "oldString": "old", "newString": "new"},
        {"replaceAll": "everywhere"},
    ),
    ToolRow("opencode", "patch", "apply_patch", {"patchText": "patch"}, former=True),
    ToolRow("opencode", "write", "write", {"filePath": "path", "content": "content"}),
    ToolRow("opencode", "search_text", "grep", _PATTERN, {**_PATH, "include": "file_glob"}),
    ToolRow("opencode", "find_files", "glob", _GLOB, _PATH),
    ToolRow("opencode", "list_files", "list", {}, _PATH, dropped=("ignore",), former=True),
    ToolRow("opencode", "fetch", "webfetch", {"url": "url"}, dropped=("format", "timeout")),
    ToolRow(
        "opencode",
        "search_web",
        "websearch",
        {"query": "query"},
        {"numResults": "result_count"},
        dropped=("type", "livecrawl", "contextMaxCharacters"),
        former=True,
    ),
    ToolRow("journeyman", "run", "terminal", _SHELL, {"timeout": "timeout_s", "workdir": "folder"}),
    ToolRow("journeyman", "run_code", "execute_code", {"code": "code"}, {"timeout": "timeout_s"}),
    ToolRow("journeyman", "read", "read_file", _PATH, _LINES),
    ToolRow(
        "journeyman",
        "edit",
        "patch",
        {**_PATH, **_EDIT},
        {"replace_all": "everywhere"},
        fixed={"mode": "replace"},
    ),
    ToolRow("journeyman", "write", "write_file", {**_PATH, "content": "content"}),
    ToolRow(
        "journeyman",
        "search_text",
        "search_files",
        _PATTERN,
        {**_PATH, "file_glob": "file_glob", "limit": "match_count"},
        fixed={"target": "content"},
    ),
    ToolRow(
        "journeyman",
        "find_files",
        "search_files",
        {"pattern": "name_glob"},
        {**_PATH, "limit": "match_count"},
        fixed={"target": "files"},
        dropped=("file_glob",),
    ),
)

SHELLS = frozenset(row.name for row in TOOLS if row.operation == "run")
"""The tools that run commands, as agents call them."""
