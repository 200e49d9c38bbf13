"""What harnesses wrap around a result: tags that mark it as untrusted, cut or an error. They are
taken off before the result itself is looked at.
"""

import re
from typing import NamedTuple


class Wrapping(NamedTuple):
    """A wrapping: how it begins, how it ends, and whether it says by itself that the call went
    wrong.
    """

    id: str
    start: str
    end: str
    is_error: bool
    example: str
    reason: str


WRAPPINGS: tuple[Wrapping, ...] = (
    Wrapping(
        "tool_use_error",
        r"<tool_use_error>",
        "</tool_use_error>",
        is_error=True,
        example="<tool_use_error>File does not exist.</tool_use_error>",
        reason="Claude Code's own mark on a call that its checks or the tool turned down",
    ),
    Wrapping(
        "error_tag",
        r"<error>",
        "</error>",
        is_error=True,
        example="<error>\nNo such element: #submit\n</error>",
        reason="several harnesses mark an error so when it is all there is",
    ),
    Wrapping(
        "untrusted",
        r'<untrusted_tool_result source="[^"\n]{0,200}">\n.*?\n\n',
        "</untrusted_tool_result>",
        is_error=False,
        example='<untrusted_tool_result source="web_search">\nThe following content was retrieved '
        'from outside.\n\n{"error": "Error searching web: quota"}\n</untrusted_tool_result>',
        reason="Hermes marks what came from outside",
    ),
    Wrapping(
        "persisted",
        r"<persisted-output>\n.{0,2000}?Preview \(first [^)\n]{1,40}\):\n",
        "</persisted-output>",
        is_error=False,
        example="<persisted-output>\nThis tool result was too large (90,000 characters, 88 KB).\n"
        "Full output saved to: /tmp/x.txt\n\nPreview (first 500 chars):\n"
        '{"error": "No such host", "output": "…\n</persisted-output>',
        reason="Hermes and Claude Code keep a long result in a file and show its beginning",
    ),
    Wrapping(
        "returned_output",
        r"<output>\n?",
        "</output>",
        is_error=False,
        example="<output>\nError: no such table: users\n</output>",
        reason="text protocols put the output in a tag",
    ),
)

_start = re.compile("|".join(f"({row.start})" for row in WRAPPINGS), re.DOTALL)


class Heading(NamedTuple):
    """A line before a result that says only that one follows."""

    id: str
    pattern: str
    example: str
    reason: str


HEADINGS: tuple[Heading, ...] = (
    Heading(
        "cline",
        r"\[\w{1,60}(?: for '[^'\n]{0,300}')?\] Result:\n",
        "[read_file for 'a'] Result:\nError: no such file",
        "Cline names the call again",
    ),
    Heading(
        "observation",
        r"(?:Observation|OBSERVATION):\s",
        "OBSERVATION:\nError: no such element",
        "OpenHands and SWE-agent, and prompts in the style of ReAct",
    ),
    Heading(
        "call_id",
        r"Call id: \S{1,80}\n",
        "Call id: 12\nError:\nno such element",
        "smolagents names the call again",
    ),
    Heading(
        "playwright",
        r"### Result\n",
        "### Result\nError: page.goto: net::ERR_CONNECTION_REFUSED",
        "the Playwright server's answers come in sections",
    ),
)

_HEADING_STARTS = ("[", "O", "C", "#")
_heading = re.compile("|".join(row.pattern for row in HEADINGS))


def without_heading(text: str) -> str:
    """The result after a line that only announces it."""
    if text[:1] not in _HEADING_STARTS:
        return text
    found = _heading.match(text)
    return text[found.end() :].lstrip() if found else text


class Unwrapped(NamedTuple):
    """A result without its wrapping."""

    wrapping: Wrapping | None
    text: str


def unwrapped(text: str) -> Unwrapped:
    """The result inside the outermost wrapping, if there is one."""
    found = _start.match(text)
    if found is None:
        return Unwrapped(None, text)
    row = WRAPPINGS[(found.lastindex or 1) - 1]
    inside = text[found.end() :]
    end = inside.rfind(row.end)
    return Unwrapped(row, (inside if end < 0 else inside[:end]).strip())
