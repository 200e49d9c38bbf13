"""A playbook as a marked block of a file that agents read, such as CLAUDE.md or AGENTS.md. What is
outside the block is never touched.
"""

import re

from journeyman.records.errors import WrongInput
from journeyman.records.playbook import Playbook, PlaybookCommand
from journeyman.redaction.instructions import find_suspicion
from journeyman.templates.commands import is_everyday
from journeyman.templates.playbook import RECURRING
from journeyman.templates.shown.briefing import command_line, mistake_line

_BEGIN = "<!-- journeyman playbook: begin. `journeyman playbook --write` rewrites this block. -->"
_END = "<!-- journeyman playbook: end -->"
_BLOCK = re.compile(
    r"^<!-- journeyman playbook: begin\b[^\n]*\n"
    r"(?:(?!<!-- journeyman playbook: (?:begin\b|end -->))[^\n]*\n)*"
    r"<!-- journeyman playbook: end -->(?:\r?\n)?",
    re.MULTILINE,
)
"""A begin without an end before the next begin is somebody's own text."""
_MOST_COMMANDS, _MOST_MISTAKES, _MOST_FILES = 15, 8, 8


def block_text(playbook: Playbook) -> str:
    """The block for a playbook. Commands that every agent knows, such as `ls`, are left out, and so
    is a line that looks like an instruction to its reader.
    """
    commands = [
        f"- {command_line(one)}{_counted(one)}"
        for one in playbook.commands
        if one.sessions >= RECURRING and not is_everyday(one.name)
    ]
    mistakes = [f"- {mistake_line(one)}" for one in playbook.mistakes]
    files = [f"- `{one.path}` ({one.sessions} sessions)" for one in playbook.files]
    sections = [f"## What works in this repository ({playbook.sessions} recorded sessions)"]
    for title, lines, most in (
        ("### Commands that work", commands, _MOST_COMMANDS),
        ("### Mistakes that recur (quoted: what was printed)", mistakes, _MOST_MISTAKES),
        ("### Files that work keeps coming back to", files, _MOST_FILES),
    ):
        kept = [line for line in lines if find_suspicion((line,)) is None][:most]
        if kept:
            sections += [f"{title}\n\n" + "\n".join(kept)]
    if len(sections) == 1:
        raise WrongInput(
            f"The playbook of {playbook.project} has nothing yet that holds in {RECURRING} "
            "sessions or more, so nothing is written. Import more sessions and learn from them."
        )
    return "\n\n".join([_BEGIN, *sections, _END]) + "\n"


def find_block(text: str) -> str:
    """The block in a text; empty if there is none."""
    found = _BLOCK.search(text)
    return found[0] if found else ""


def with_block(text: str, block: str) -> str:
    """The text with this block in the place of the one it has, or else at its end."""
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: block, text, count=1)
    return text + gap_before_block(text) + block


def without_block(text: str, before: str = "", gap: str = "") -> str:
    """The text with what stood there before in the place of its block: another block, or nothing,
    and then the gap that was made for it goes too. A text without a block stays as it is.
    """
    found = _BLOCK.search(text)
    if found is None:
        return text
    head = text[: found.start()]
    return (head if before else head.removesuffix(gap)) + before + text[found.end() :]


def gap_before_block(text: str) -> str:
    """What stands between a text and a block at its end, so that an empty line does."""
    if not text or text.endswith(("\n\n", "\n\r\n")):
        return ""
    return "\n" if text.endswith("\n") else "\n\n"


def _counted(command: PlaybookCommand) -> str:
    share = f", {command.reliability:.0%} worked" if command.failed else ""
    return f" ({command.sessions} sessions{share})"
