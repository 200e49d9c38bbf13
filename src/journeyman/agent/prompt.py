"""The system prompt: made once when a session begins and kept with it, so that every request of the
session, of its continuations and of its review begins with the same bytes.
"""

from pathlib import Path

_WORK = (
    "You are an agent that gets work done with tools, in the folder {workspace}. Paths are "
    "relative to it. Do the task step by step: call a tool, look at its result, go on. Check what "
    "you did before you say that it is done. When the task is done, or cannot be done, say so in "
    "a few words; do not claim what no result shows."
)


def system_prompt(workspace: Path, knowledge: str = "", briefing: str = "") -> str:
    """The prompt for work in a folder, with what is remembered and what else is to be known."""
    parts = (_WORK.format(workspace=workspace.name or str(workspace)), knowledge, briefing)
    return "\n\n".join(part.strip() for part in parts if part.strip())
