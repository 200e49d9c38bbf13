"""What harnesses add to results, taken off again where that is simple: another agent that sees a
call in its own words would otherwise learn a format that its tools do not have.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

from journeyman.logs.codex_output import peeled
from journeyman.templates.translation.tool_table import Operation

_READS: tuple[Operation, ...] = ("read",)
_RUNS: tuple[Operation, ...] = ("run", "run_code")
_SEARCHES: tuple[Operation, ...] = ("search_text", "find_files")
_CHANGES: tuple[Operation, ...] = ("edit", "patch", "write")
_EVERY: tuple[Operation, ...] = get_args(Operation)
_AGENTS_WITH_JSON = ("hermes", "journeyman")

_RETURN_CODE = re.compile(
    r"\A<returncode>(-?\d+)</returncode>\s*<output>\n?(.*?)\n?</output>\s*\Z", re.S
)


class ResultFormat(NamedTuple):
    """Something that the results of some agents' operations have around them, and how to take it
    off.
    """

    id: str
    sources: tuple[str, ...]
    operations: tuple[Operation, ...]
    plain: Callable[[str], str]
    example: str
    shown: str


def _without(pattern: str) -> Callable[[str], str]:
    found = re.compile(pattern, re.M)
    return lambda text: found.sub("", text)


def _with_code(output: str, code: object) -> str:
    """Output that says how the command ended, where it did not end well."""
    return f"Exit code {code}\n{output}".rstrip() if code not in (0, None) else output


def _after_head(text: str) -> str:
    output, recorded = peeled(text)
    return _with_code(output, recorded and recorded.exit_code)


def _out_of_tags(text: str) -> str:
    found = _RETURN_CODE.match(text)
    return _with_code(found[2], int(found[1])) if found else text


def _out_of_json(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        answer: Any = json.loads(text, strict=False)  # a cut is marked with a line of its own
    except (ValueError, RecursionError):
        return text
    if isinstance(answer.get("output"), str):
        return _with_code(answer["output"], answer.get("exit_code"))
    if isinstance(content := answer.get("content"), str):
        return content
    matches = answer.get("matches", answer.get("files"))
    return "\n".join(map(_match_line, matches)) if isinstance(matches, list) else text


def _match_line(match: Any) -> str:
    if not isinstance(match, dict):
        return str(match)
    return ":".join(str(match[key]) for key in ("path", "line", "content") if key in match)


FORMATS: tuple[ResultFormat, ...] = (
    ResultFormat(
        "claude_reminder",
        ("claude_code",),
        _EVERY,
        _without(r"\s*<system-reminder>[\s\S]*?</system-reminder>\s*"),
        "x = 1\n\n<system-reminder>\nTake care.\n</system-reminder>\n",
        "x = 1",
    ),
    ResultFormat(
        "claude_line_numbers",
        ("claude_code",),
        _READS,
        _without(r"^ *\d+(?:→|\t)"),
        "     9→def f():\n    10→    return 1",
        "def f():\n    return 1",
    ),
    ResultFormat(
        "claude_count",
        ("claude_code",),
        _SEARCHES,
        _without(r"\AFound \d+ files?(?: limit: \d+)?\n"),
        "Found 2 files\na.py\nb.py",
        "a.py\nb.py",
    ),
    ResultFormat(
        "codex_head",
        ("codex",),
        _EVERY,
        _after_head,
        "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno such file",
        "Exit code 1\nno such file",
    ),
    ResultFormat(
        "json_answer",
        _AGENTS_WITH_JSON,
        (*_READS, *_RUNS, *_SEARCHES),
        _out_of_json,
        '{"output": "two\\nlines", "exit_code": 0, "error": null}',
        "two\nlines",
    ),
    ResultFormat(
        "hermes_line_numbers",
        _AGENTS_WITH_JSON,
        _READS,
        _without(r"^\d+\|"),
        '{"content": "9|def f():\\n10|    return 1", "total_lines": 10}',
        "def f():\n    return 1",
    ),
    ResultFormat(
        "opencode_tags",
        ("opencode",),
        _READS,
        _without(
            r"\A(?:<path>.*</path>\n<type>.*</type>\n<content>\n|<file>\n)"
            r"|\n*^\((?:Showing lines|End of file).*\)$|\n</(?:content|file)>\s*\Z"
        ),
        "<path>a.py</path>\n<type>file</type>\n<content>\nx = 1\n\n"
        "(Showing lines 2-3 of 5. Use offset=4 to continue.)\n</content>",
        "x = 1",
    ),
    ResultFormat(
        "opencode_line_numbers",
        ("opencode",),
        _READS,
        _without(r"^(?:\d+: |\d{5}\| )"),
        "9: def f():\n10:     return 1",
        "def f():\n    return 1",
    ),
    ResultFormat(
        "return_code_tags",
        ("mini_swe_agent",),
        _RUNS,
        _out_of_tags,
        "<returncode>2</returncode>\n<output>\nno such file\n</output>",
        "Exit code 2\nno such file",
    ),
)
"""Tried one after the other: what one leaves, the next may have more to take off."""

_DONE = "Done."
"""What stands for the words in which a harness confirms that it has changed a file."""


def result_for(target: str, result: str, operation: Operation, source: str, *, worked: bool) -> str:
    """A result as any agent could have got it; as it was, where both agents have one format."""
    if source == target or {source, target} <= set(_AGENTS_WITH_JSON):
        return result
    if worked and operation in _CHANGES:
        return _DONE
    for row in FORMATS:
        if source in row.sources and operation in row.operations:
            result = row.plain(result)
    return result
