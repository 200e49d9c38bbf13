"""Recognises a task that plainly needs a tool call. The embedded model is so small that it often
claims to have done what it has not; without a single call, its answer to such a task is no success.
"""

import re

from journeyman.agent.turn import TurnStopped

# At the start of a sentence or after a conjunction. Verbs that a text can satisfy are left out.
_DEED = re.compile(
    r"(?:^|[.!?;:,\n]\s*|\b(?:and|then|please)\s+)(?:build|commit|compile|copy|create|delete|"
    r"deploy|download|edit|execute|fix|implement|install|move|refactor|remove|rename|run|save|"
    r"tidy|update)\s+\w",
    re.IGNORECASE,
)
_FILE = re.compile(
    r"[\w-]\.(?:c|cfg|conf|cpp|css|csv|go|h|html|ini|java|js|json|log|md|py|rs|sh|sql|toml|ts|tsx|"
    r"txt|xml|yaml|yml)\b|(?<![\w/])(?:~|\.{1,2})?/\w",
    re.IGNORECASE,
)
_NOTE = (
    "The embedded model answered without using a tool, so nothing was read or changed, whatever "
    "its answer says. It is meant for trying things out; configure a larger model for real work."
)


def needs_tools(task: str) -> bool:
    """Return whether a task cannot be done by answering: it orders a deed or names a file."""
    return bool(_DEED.search(task) or _FILE.search(task))


def check_deeds(task: str) -> TurnStopped | None:
    """Return the end of a turn that made no call, if its task needed one."""
    return TurnStopped(stop="nothing_done", note=_NOTE) if needs_tools(task) else None
