"""Translating tool calls from one agent to another."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.agent.agent import SOURCE
from journeyman.agent.tools.tool import ToolLimits
from journeyman.agent.tools.toolbox import workspace_tools
from journeyman.agent.tools.workspace import Workspace
from journeyman.logs.claude_code import ClaudeCodeReader
from journeyman.logs.codex import CodexReader
from journeyman.logs.hermes_rows import SOURCE as HERMES
from journeyman.records import Pattern, PatternId, Step
from journeyman.templates import tool_translation
from journeyman.templates.argument_fields import (
    RESULT_FORMATS,
    TOOLS,
    AgentTool,
    Dialect,
    ResultFormat,
    find_call,
    write_arguments,
)
from journeyman.templates.tool_schemas import LiveTools
from journeyman.templates.tool_translation import (
    file_path,
    find_dialect,
    find_only_change,
    find_patch,
    operation_of,
    result_for,
    shell_command,
)

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
PAIRS = list(permutations(DIALECTS, 2))

RUN = {
    "claude_code": ("Bash", {"command": "ls -R | wc", "timeout": 5000}),
    "codex": ("exec_command", {"cmd": "ls -R | wc"}),
    "hermes": ("terminal", {"command": "ls -R | wc", "timeout": 5}),
    "opencode": ("bash", {"command": "ls -R | wc", "timeout": 5000}),
    "journeyman": ("terminal", {"command": "ls -R | wc", "timeout": 5}),
}
READ = {
    "claude_code": ("Read", {"file_path": "a.py", "offset": 3, "limit": 4}),
    "codex": ("exec_command", {"cmd": "sed -n 3,6p a.py"}),
    "hermes": ("read_file", {"path": "a.py", "offset": 3, "limit": 4}),
    "opencode": ("read", {"filePath": "a.py", "offset": 3, "limit": 4}),
    "journeyman": ("read_file", {"path": "a.py", "offset": 3, "limit": 4}),
}
EDIT = {
    "claude_code": ("Edit", {"file_path": "a.py", "old_string": " a", "new_string": " b"}),
    "codex": (
        "exec_command",
        {
            "cmd": "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n- a\n+ b\n"
            "*** End Patch\nEOF"
        },
    ),
    "hermes": (
        "patch",
        {"mode": "replace", "path": "a.py", "old_string": " a", "new_string": " b"},
    ),
    "opencode": ("edit", {"filePath": "a.py", "oldString": " a", "newString": " b"}),
    "journeyman": (
        "patch",
        {"mode": "replace", "path": "a.py", "old_string": " a", "new_string": " b"},
    ),
}
WRITE = {
    "claude_code": ("Write", {"file_path": "a b.txt", "content": "x\ny\n"}),
    "codex": ("exec_command", {"cmd": "cat > 'a b.txt' <<'EOF'\nx\ny\nEOF"}),
    "hermes": ("write_file", {"path": "a b.txt", "content": "x\ny\n"}),
    "opencode": ("write", {"filePath": "a b.txt", "content": "x\ny\n"}),
    "journeyman": ("write_file", {"path": "a b.txt", "content": "x\ny\n"}),
}
SEARCH = {
    "claude_code": (
        "Grep",
        {"pattern": "x+", "path": "src", "glob": "*.py", "output_mode": "content"},
    ),
    "codex": ("exec_command", {"cmd": "rg -n -g '*.py' -e x+ src"}),
    "hermes": (
        "search_files",
        {"target": "content", "pattern": "x+", "path": "src", "file_glob": "*.py"},
    ),
    "opencode": ("grep", {"pattern": "x+", "path": "src", "include": "*.py"}),
    "journeyman": (
        "search_files",
        {"target": "content", "pattern": "x+", "path": "src", "file_glob": "*.py"},
    ),
}
FIND = {
    "claude_code": ("Glob", {"pattern": "**/*.py", "path": "src"}),
    "codex": ("exec_command", {"cmd": "rg --files -g '**/*.py' src"}),
    "hermes": ("search_files", {"target": "files", "pattern": "*.py", "path": "src"}),
    "opencode": ("glob", {"pattern": "**/*.py", "path": "src"}),
    "journeyman": ("search_files", {"target": "files", "pattern": "*.py", "path": "src"}),
}
SAME_CALLS = {
    "run": RUN,
    "read": READ,
    "edit": EDIT,
    "write": WRITE,
    "search": SEARCH,
    "find": FIND,
}


def step(tool: str, arguments: Any, result: str = "", *, worked: bool = True) -> Step:
    return Step(tool=tool, arguments=json.dumps(arguments), result=result, worked=worked)


def call_of(translated: Step | str) -> tuple[str, Any]:
    assert isinstance(translated, Step), translated
    return translated.tool, json.loads(translated.arguments)


@table(
    ("name", "source", "target"),
    [(name, *pair) for name in SAME_CALLS for pair in PAIRS if name == "run" or pair[0] != "codex"],
)
def test_equivalent_calls_are_translated(name: str, source: str, target: Dialect) -> None:
    calls = SAME_CALLS[name]
    tool, arguments = calls[target]
    if source == "codex":  # it takes no time limit
        arguments = {key: value for key, value in arguments.items() if key != "timeout"}
    assert call_of(translate(step(*calls[source]), source, target)) == (tool, arguments)


@table(
    ("source", "tool", "arguments", "target", "expected"),
    [
        (
            "codex",
            "shell",
            {"command": ["bash", "-lc", "rg x | head"], "workdir": "/my repo", "timeout_ms": 1500},
            "claude_code",
            ("Bash", {"command": "cd '/my repo' && rg x | head", "timeout": 1500}),
        ),
        (
            "codex",
            "shell",
            {"command": ["sed", "-n", "1,5p", "a b"], "timeout_ms": 1500},
            "hermes",
            ("terminal", {"command": "sed -n 1,5p 'a b'", "timeout": 2}),
        ),
        (
            "codex",
            "exec_command",
            {"cmd": "bash -lc 'make test'", "yield_time_ms": 10, "workdir": "x"},
            "opencode",
            ("bash", {"command": "make test", "workdir": "x"}),
        ),
        (
            "codex",
            "local_shell",
            {"type": "exec", "command": ["ls"], "working_directory": "x", "env": {}},
            "journeyman",
            ("terminal", {"command": "ls", "workdir": "x"}),
        ),
        (
            "codex",
            "apply_patch",
            {"input": "*** Begin Patch\n*** Add File: a\n+x\n+y\n*** End Patch"},
            "claude_code",
            ("Write", {"file_path": "a", "content": "x\ny\n"}),
        ),
        (
            "codex",
            "exec_command",
            {
                "cmd": "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n@@ def f():\n x\n"
                "-y\n+z\n*** End Patch\nEOF"
            },
            "opencode",
            ("edit", {"filePath": "a", "oldString": "x\ny", "newString": "x\nz"}),
        ),
        (
            "codex",
            "shell",
            {
                "command": [
                    "apply_patch",
                    "*** Begin Patch\n*** Update File: a\n@@\n-x\n*** End Patch",
                ]
            },
            "journeyman",
            ("patch", {"mode": "replace", "path": "a", "old_string": "x\n", "new_string": ""}),
        ),
        (
            "codex",
            "apply_patch",
            {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"},
            "hermes",
            (
                "patch",
                {"mode": "patch", "patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"},
            ),
        ),
        ("codex", "list_dir", {"dir_path": "src"}, "hermes", ("terminal", {"command": "ls src"})),
        (
            "hermes",
            "execute_code",
            {"code": "print(1)\n"},
            "claude_code",
            ("Bash", {"command": "python3 - <<'EOF'\nprint(1)\nEOF"}),
        ),
        (
            "hermes",
            "patch",
            {"path": "a", "old_string": "x", "new_string": "y"},
            "opencode",
            ("edit", {"filePath": "a", "oldString": "x", "newString": "y"}),
        ),
        (
            "hermes",
            "web_extract",
            {"urls": ["https://a.example"]},
            "opencode",
            ("webfetch", {"url": "https://a.example"}),
        ),
        (
            "claude_code",
            "WebSearch",
            {"query": "x"},
            "hermes",
            ("web_search", {"query": "x"}),
        ),
        (
            "claude_code",
            "Grep",
            {"pattern": "x", "-i": True, "type": "rust", "-C": 2, "head_limit": 9},
            "hermes",
            (
                "search_files",
                {
                    "target": "content",
                    "pattern": "(?i)x",
                    "file_glob": "*.rs",
                    "limit": 9,
                    "output_mode": "files_only",
                    "context": 2,
                },
            ),
        ),
        (
            "claude_code",
            "Grep",
            {"pattern": "-x"},
            "codex",
            ("exec_command", {"cmd": "rg -l -e -x"}),
        ),
        (
            "claude_code",
            "Glob",
            {"pattern": "src/lib/**/*.ts"},
            "hermes",
            ("search_files", {"target": "files", "pattern": "*.ts", "path": "src/lib"}),
        ),
        (
            "claude_code",
            "Glob",
            {"pattern": "*/test_*/*.py"},
            "journeyman",
            ("terminal", {"command": "rg --files -g '*/test_*/*.py'"}),
        ),
        (
            "claude_code",
            "Read",
            {"file_path": "a", "offset": 0, "limit": "5000"},
            "hermes",
            ("read_file", {"path": "a", "limit": 5000}),
        ),
        (
            "claude_code",
            "Bash",
            {"command": "make", "timeout": "<number:1>", "run_in_background": False},
            "hermes",
            ("terminal", {"command": "make"}),
        ),
        (
            "claude_code",
            "Write",
            {"file_path": "a", "content": "EOF\nx"},
            "codex",
            ("exec_command", {"cmd": "cat > a <<'EOF_'\nEOF\nx\nEOF_"}),
        ),
        ("mini_swe_agent", "bash", {"command": "ls"}, "claude_code", ("Bash", {"command": "ls"})),
        ("openai", "read_file", {"path": "a"}, "claude_code", ("Read", {"file_path": "a"})),
        ("openai", "read_file", {"file_path": "a"}, "hermes", ("read_file", {"path": "a"})),
    ],
)
def test_special_cases(
    source: str, tool: str, arguments: Any, target: Dialect, expected: tuple[str, Any]
) -> None:
    assert call_of(translate(step(tool, arguments), source, target)) == expected


@table(
    ("source", "tool", "arguments", "target", "reason"),
    [
        ("claude_code", "TodoWrite", {"todos": []}, "codex", "codex has no counterpart"),
        ("claude_code", "Agent", {"prompt": "x"}, "hermes", "hermes has no counterpart"),
        ("claude_code", "mcp__docs__find", {"q": "x"}, "codex", "MCP server"),
        (
            "claude_code",
            "Bash",
            {"command": "x", "run_in_background": True},
            "hermes",
            "background",
        ),
        ("claude_code", "Bash", {}, "hermes", "no counterpart"),
        ("claude_code", "Read", {"file_path": "a.pdf", "pages": "1-3"}, "hermes", "pages"),
        ("claude_code", "Grep", {"pattern": "x", "multiline": True}, "hermes", "across lines"),
        ("claude_code", "Grep", {"pattern": "x", "output_mode": "count"}, "opencode", "counts"),
        (
            "claude_code",
            "Edit",
            {"file_path": "a", "old_string": "part", "new_string": "b"},
            "codex",
            "codex has no counterpart of Edit",
        ),
        (
            "claude_code",
            "Edit",
            {"file_path": "a", "old_string": " a", "new_string": " b", "replace_all": True},
            "codex",
            "codex has no counterpart of Edit",
        ),
        (
            "codex",
            "apply_patch",
            {"input": "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n@@\n-v\n+w\n*** End Patch"},
            "claude_code",
            "claude_code has no counterpart of apply_patch",
        ),
        (
            "codex",
            "apply_patch",
            {
                "input": "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Add File: b\n+z\n"
                "*** End Patch"
            },
            "opencode",
            "no counterpart of apply_patch",
        ),
        ("opencode", "webfetch", {"url": "https://a.example"}, "claude_code", "no counterpart"),
        ("hermes", "web_extract", {"urls": ["x", "y"]}, "opencode", "no counterpart"),
        ("hermes", "execute_code", {"code": "import hermes_tools"}, "claude_code", "functions"),
        ("codex", "exec_command", {"cmd": "python3", "tty": True}, "claude_code", "terminal"),
        (
            "codex",
            "exec_command",
            {"cmd": "cd x && apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF"},
            "claude_code",
            "middle of a script",
        ),
        (
            "codex",
            "apply_patch",
            {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"},
            "claude_code",
            "claude_code has no counterpart of apply_patch",
        ),
    ],
)
def test_calls_without_a_counterpart(
    source: str, tool: str, arguments: Any, target: Dialect, reason: str
) -> None:
    found = translate(step(tool, arguments), source, target)
    assert isinstance(found, str), found
    assert reason in found
    assert found.endswith(".")


def test_malformed_arguments_and_harness_errors_are_not_translated() -> None:
    for arguments in ("", "{", "[]", '"x"', "null"):
        found = translate(Step(tool="Read", arguments=arguments), "claude_code", "hermes")
        assert isinstance(found, str)
    unread = "<tool_use_error>File has not been read yet.</tool_use_error>"
    failed = step(*EDIT["claude_code"], unread, worked=False)
    assert isinstance(translate(failed, "claude_code", "hermes"), str)
    failed = step(*RUN["claude_code"], "Exit code 2\nno rule to make x", worked=False)
    found = translate(failed, "claude_code", "hermes")
    assert isinstance(found, Step)
    assert not found.worked


def test_calls_the_target_understands_are_unchanged() -> None:
    own = step("Grep", {"pattern": "x", "path": "src"}, "  1→x")
    assert translate(own, "claude_code", "claude_code") is own
    shared = step("terminal", {"command": "ls"}, '{"output": "a", "exit_code": 0}')
    assert translate(shared, "hermes", "journeyman") is shared
    assert translate(shared, "journeyman", "hermes") is shared
    same_name = step("bash", {"command": "ls"}, "<returncode>0</returncode>\n<output>\na</output>")
    assert translate(same_name, "mini_swe_agent", "opencode") == step(
        "bash", {"command": "ls"}, "a"
    )


FORMER = {
    *{("claude_code", "LS"), ("opencode", "apply_patch"), ("opencode", "list")},
    *{("opencode", "websearch"), ("codex", "shell"), ("codex", "local_shell")},
    *{("codex", "apply_patch"), ("codex", "read_file"), ("codex", "grep_files")},
    ("codex", "list_dir"),
}
"""Tools of older versions or of some models only."""


def offered(dialect: Dialect) -> LiveTools:
    """Return the current tools of an agent, with parameters of any type."""
    rows = [row for row in TOOLS if row.dialect == dialect and (dialect, row.name) not in FORMER]
    found: dict[str, Any] = {}
    for row in rows:
        schema = found.setdefault(row.name, {"type": "object", "properties": {}})
        schema["properties"] |= {key: {} for key in (*row.required, *row.optional, *row.fixed)}
        required = schema.get("required", row.required)
        schema["required"] = [name for name in required if name in row.required]
    return LiveTools.read(found)


OFFERED = {dialect: offered(dialect) for dialect in DIALECTS}


def translate(
    recorded: Step, source: str, target: Dialect, tools: LiveTools | None = None
) -> Step | str:
    return tool_translation.translate(recorded, source, target, tools or OFFERED[target])


def translate_pattern(pattern: Pattern, target: Dialect) -> Pattern | str:
    return tool_translation.translate_pattern(pattern, target, OFFERED[target])


def live(**tools: list[str]) -> LiveTools:
    """Return tools with parameters of any type, the first of which is required."""
    return LiveTools.read(
        {
            name: {
                "type": "object",
                "properties": {parameter: {} for parameter in parameters},
                "required": parameters[:1],
                "additionalProperties": False,
            }
            for name, parameters in tools.items()
        }
    )


def test_translation_fits_the_live_tools() -> None:
    # Of several shells, the offered one is called.
    run = step("Bash", {"command": "ls", "timeout": 1000})
    older = live(shell=["command", "workdir"])
    expected = ("shell", {"command": ["bash", "-lc", "ls"]})
    assert call_of(translate(run, "claude_code", "codex", older)) == expected

    # Recordings of an older version of the same agent are updated.
    recorded = step("shell", {"command": ["bash", "-lc", "ls"]})
    newer = live(exec_command=["cmd"])
    expected = ("exec_command", {"cmd": "ls"})
    assert call_of(translate(recorded, "codex", "codex", newer)) == expected

    # Optional arguments that the live tool lacks are dropped, except the working directory.
    recorded = step("shell", {"command": ["ls"], "workdir": "x", "timeout_ms": 1000})
    found = translate(recorded, "codex", "hermes", live(terminal=["command"]))
    assert call_of(found) == ("terminal", {"command": "cd x && ls"})

    # A tool that is not offered is replaced by a shell command.
    search = step("grep", {"pattern": "x"})
    found = translate(search, "opencode", "claude_code", live(Bash=["command"]))
    assert call_of(found) == ("Bash", {"command": "rg -n -e x"})

    # Models that edit with patches get a patch.
    edit = step(*EDIT["claude_code"])
    found = translate(edit, "claude_code", "opencode", live(apply_patch=["patchText"]))
    assert call_of(found)[0] == "apply_patch"

    # A tool with a different schema is not used.
    found = translate(run, "claude_code", "hermes", live(terminal=["script"]))
    assert found == "The agent hermes has no counterpart of Bash that fits."
    assert isinstance(translate(run, "claude_code", "hermes", live(other=["x"])), str)

    # MCP tools have the same name in every agent.
    find = step("mcp__docs__find", {"q": "x"})
    assert translate(find, "claude_code", "codex", live(mcp__docs__find=["q"])) is find
    assert isinstance(translate(find, "claude_code", "codex", live(mcp__docs__find=["query"])), str)

    # A failed call of the agent's own tool is kept even if it does not fit.
    mistake = step("Read", {"path": "x"}, "no such parameter", worked=False)
    assert translate(mistake, "claude_code", "claude_code", live(Read=["file_path"])) is mistake


def test_patterns_are_translated_as_a_whole() -> None:
    steps = (step(*READ["claude_code"], "     3→x\n     4→y"), step(*RUN["claude_code"], "7"))
    pattern = Pattern(
        id=PatternId("p"), kind="sequence", intent="Count", steps=steps, source="claude_code"
    )
    assert translate_pattern(pattern, "claude_code") is pattern
    found = translate_pattern(pattern, "hermes")
    assert isinstance(found, Pattern)
    assert (found.id, found.source, found.tools) == ("p", "hermes", ("read_file", "terminal"))
    assert [one.result for one in found.steps] == ["x\ny", "7"]
    planned = Pattern(
        id=PatternId("q"),
        kind="sequence",
        intent="Plan",
        steps=(*steps, step("TodoWrite", {"todos": []})),
        source="claude_code",
    )
    assert translate_pattern(planned, "hermes") == (
        "The agent hermes has no counterpart of TodoWrite that fits."
    )


@table("row", RESULT_FORMATS, ids=[row.id for row in RESULT_FORMATS])
def test_result_formats(row: ResultFormat) -> None:
    operation = row.operations[0]
    found = result_for("another", row.example, operation, row.sources[0], worked=True)
    assert found == row.shown
    # A result in another format is unchanged.
    assert result_for("another", "x = 1", operation, row.sources[0], worked=True) == "x = 1"


def test_results_are_rewritten_for_the_target() -> None:
    cut = '{"output": "head\n… [900 characters left out] …\ntail", "exit_code": 3, "error": null}'
    assert result_for("codex", cut, "run", "hermes", worked=True) == (
        "Exit code 3\nhead\n… [900 characters left out] …\ntail"
    )
    head = "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno such file"
    assert result_for("hermes", head, "run", "codex", worked=False) == "Exit code 1\nno such file"
    tags = "<returncode>2</returncode>\n<output>\nno such file\n</output>"
    assert result_for("codex", tags, "run", "mini_swe_agent", worked=False) == (
        "Exit code 2\nno such file"
    )
    half = '{"output": "head …'
    assert result_for("codex", half, "run", "hermes", worked=True) == half
    found = '{"total_count": 1, "matches": [{"path": "a.py", "line": 2, "content": "x = 1"}]}'
    assert result_for("codex", found, "search_text", "hermes", worked=True) == "a.py:2:x = 1"
    files = '{"total_count": 2, "files": ["a.py", "b.py"]}'
    assert result_for("codex", files, "find_files", "journeyman", worked=True) == "a.py\nb.py"
    assert result_for(
        "codex", "The file a has been updated", "edit", "claude_code", worked=True
    ) == ("Done.")
    assert result_for("codex", "Text not found", "edit", "claude_code", worked=False) == (
        "Text not found"
    )


@table(
    ("dialect", "names"),
    [
        ("claude_code", "Agent Bash Edit Glob Grep Read Skill WebFetch Write"),
        ("claude_code", "Read Edit mcp__docs__find"),
        ("codex", "exec_command write_stdin view_image update_plan web_search"),
        ("codex", "shell apply_patch update_plan"),
        ("codex", "shell_command apply_patch"),
        ("hermes", "terminal process read_file write_file patch search_files todo clarify"),
        ("hermes", "read_file write_file patch search_files"),
        ("opencode", "bash edit glob grep read skill task todowrite webfetch write"),
        ("opencode", "apply_patch bash glob grep read"),
        ("journeyman", "terminal execute_code read_file write_file patch search_files"),
        (None, "bash"),
        (None, "get_order cancel_order"),
        (None, ""),
    ],
)
def test_dialect_is_found_from_tool_names(dialect: str | None, names: str) -> None:
    assert find_dialect(names.split()) == dialect


@table(
    ("tool", "arguments", "operation", "command", "path"),
    [
        ("Bash", {"command": "ls"}, "run", "ls", ""),
        ("shell", {"command": ["bash", "-lc", "ls -l"]}, "run", "ls -l", ""),
        ("shell", {"command": ["sed", "-n", "1p", "a"]}, "run", "sed -n 1p a", ""),
        ("exec_command", {"cmd": "ls"}, "run", "ls", ""),
        ("terminal", {"command": "ls"}, "run", "ls", ""),
        ("bash", {}, "run", "", ""),
        ("execute_code", {"code": "x"}, "run_code", "", ""),
        ("Read", {"file_path": "a"}, "read", "", "a"),
        ("read_file", {"path": "a"}, "read", "", "a"),
        ("read", {"filePath": "a"}, "read", "", "a"),
        ("Edit", {"file_path": "a"}, "edit", "", "a"),
        ("patch", {"path": "a", "old_string": "x"}, "edit", "", "a"),
        ("patch", {"mode": "patch", "patch": "*** Update File: a"}, "patch", "", "a"),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: a b\n"}, "patch", "", "a b"),
        ("apply_patch", {"patchText": "*** Add File: a"}, "patch", "", "a"),
        ("write_file", {"path": "a", "content": ""}, "write", "", "a"),
        ("search_files", {"pattern": "x", "path": "src"}, "search_text", "", ""),
        ("search_files", {"pattern": "x", "target": "files"}, "find_files", "", ""),
        ("WebFetch", {"url": "x"}, "fetch", "", ""),
        ("TodoWrite", {"todos": []}, None, "", ""),
        ("mcp__fs__read_file", {"path": "a"}, None, "", ""),
    ],
)
def test_operation_command_and_path_of_a_call(
    tool: str, arguments: Any, operation: str | None, command: str, path: str
) -> None:
    text = json.dumps(arguments)
    assert operation_of(tool, text) == operation
    assert shell_command(tool, text) == command
    assert file_path(tool, text) == path


def test_patch_inside_a_command() -> None:
    command = "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF"
    arguments = json.dumps({"cmd": command})
    assert operation_of("exec_command", arguments) == "patch"
    assert shell_command("exec_command", arguments) == command
    assert file_path("exec_command", arguments) == "a"


def test_dialects_match_the_session_sources() -> None:
    assert set(DIALECTS) == {ClaudeCodeReader.name, CodexReader.name, HERMES, SOURCE, "opencode"}


def test_own_tools_match_the_table(tmp_path: Path) -> None:
    tools = {
        tool.name: tool.parameters for tool in workspace_tools(Workspace(tmp_path), ToolLimits())
    }
    rows = [row for row in TOOLS if row.dialect == "journeyman"]
    translated = {"terminal", "execute_code", "read_file", "write_file", "patch", "search_files"}
    assert translated <= {row.name for row in rows} <= tools.keys()
    for row in rows:
        known = {*row.required, *row.optional, *row.fixed}
        assert known <= tools[row.name]["properties"].keys()
        assert set(tools[row.name]["required"]) <= row.required.keys()


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
lines = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1)


@given(st.sampled_from(PAIRS), texts, st.none() | st.integers(1, 600))
def test_commands_survive_a_round_trip(
    pair: tuple[Dialect, Dialect], command: str, seconds: int
) -> None:
    assume("*** Begin Patch" not in command)
    source, target = pair
    row = next(row for row in TOOLS if (row.dialect, row.operation) == (source, "run"))
    fields = {"command": command} | ({"timeout_s": seconds} if seconds else {})
    there = translate(step(row.name, write_arguments(fields, row)), source, target)
    tool, arguments = call_of(there)
    assert shell_command(tool, json.dumps(arguments)) == command
    back = call_of(translate(step(tool, arguments), target, source))
    assert back[0] == row.name
    assert shell_command(back[0], json.dumps(back[1])) == command


@given(st.sampled_from(PAIRS), texts, texts, st.sampled_from(["read", "write"]))
def test_file_calls_survive_a_round_trip(
    pair: tuple[Dialect, Dialect], path: str, content: str, operation: str
) -> None:
    assume("codex" not in pair)
    source, target = pair
    row = next(row for row in TOOLS if (row.dialect, row.operation) == (source, operation))
    fields = {"path": path, "content": content, "first_line": 3}
    call = step(row.name, write_arguments(fields, row))
    tool, arguments = call_of(translate(call, source, target))
    assert file_path(tool, json.dumps(arguments)) == path
    assert call_of(translate(step(tool, arguments), target, source)) == call_of(call)


VALUES: dict[str, Any] = {
    "command": "ls",
    "path": "a/b.py",
    "old": " x\n y",
    "new": " x\n z",
    "content": "x\n",
    "patch": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch",
    "code": "print(1)",
    "pattern": "x+",
    "glob": "**/*.py",
    "file_glob": "*.py",
    "listing": "files",
    "url": "https://a.example",
    "prompt": "What is it?",
    "query": "x",
    "folder": "src",
    "timeout_s": 90,
    "first_line": 3,
    "line_count": 5000,
    "context": 2,
    "match_count": 7,
    "result_count": 7,
}


@pytest.mark.parametrize("target", DIALECTS)
@given(data=st.data())
def test_translated_calls_have_valid_arguments(target: Dialect, data: st.DataObject) -> None:
    row: AgentTool = data.draw(st.sampled_from([one for one in TOOLS if one.dialect != target]))
    left_out = data.draw(st.sets(st.sampled_from(sorted(VALUES))))
    fields = {name: value for name, value in VALUES.items() if name not in left_out}
    arguments = write_arguments(fields, row)
    assume(arguments is not None)
    found = translate(step(row.name, arguments), row.dialect, target)
    if isinstance(found, str):
        return
    given_names = json.loads(found.arguments).keys()
    assert any(
        one.required.keys() <= given_names <= {*one.required, *one.optional, *one.fixed}
        for one in TOOLS
        if one.dialect == target and one.name == found.tool
    )
    before = find_call(row.name, json.dumps(arguments), row.dialect)
    after = find_call(found.tool, found.arguments, target)
    assert before is not None
    assert after is not None
    assert after.operation in (before.operation, "run", "write", "edit", "patch")
    if target == "journeyman":
        own = [one.definition for one in workspace_tools(Workspace(Path.cwd()), ToolLimits())]
        assert LiveTools.read(own).misfit(found) == ""


@given(lines, lines)
def test_edits_survive_a_round_trip_as_patches(old: str, new: str) -> None:
    old, new = f" {old}", new.removesuffix("\n")
    patch = find_patch("a.py", old, new)
    assume(patch and new)
    edit = {"path": "a.py", "old": old.removesuffix("\n"), "new": new}
    assert find_only_change(patch) == ("edit", edit)
