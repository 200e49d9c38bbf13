"""Recognises a task that plainly needs a tool call. The embedded model is so small that it often
claims to have done what it has not; without a single call, its answer to such a task is no success.
"""

import re

from journeyman.agent.turn import TurnStopped

# At the start of a sentence or after a conjunction. Verbs that a text can satisfy are left out.
_ACTION = re.compile(
    r"(?:^|[.!?;:,\n][ \t]*|\b(?:and|then|please)\s+)(?:build|commit|compile|copy|create|delete|"
    r"deploy|download|edit|execute|fix|implement|install|move|refactor|remove|rename|run|save|"
    r"tidy|update)\s+\w",
    re.IGNORECASE,
)
# What a text answers, whichever verbs it contains: "How do I create a branch and delete it?"
_QUESTION = re.compile(
    r"(?:^|(?<=[.!?\n]))[ \t]*(?:how|what|when|why)\b[^.!?\n]*\?|\bhow to\b[^.!?\n]*", re.IGNORECASE
)
_FILE = re.compile(
    r"[\w-]\.(?:c|cfg|conf|cpp|css|csv|go|h|html|ini|java|js|json|log|md|py|rs|sh|sql|toml|ts|tsx|"
    r"txt|xml|yaml|yml)\b|(?<![\w/~.])(?:~|\.{1,2})/\w|(?<![\w/~.])/(?:Applications|bin|boot|dev|"
    r"etc|home|lib|Library|media|mnt|opt|private|proc|root|run|sbin|srv|sys|tmp|Users|usr|var|"
    r"Volumes|workspace)\b",
    re.IGNORECASE,
)
# Projects whose names look like those of files.
_PROJECT = re.compile(
    r"(?<![\w./-])(?:alpine|angular|backbone|chart|d3|discord|ember|express|moment|nest|next|node|"
    r"nuxt|p5|react|require|socket|three|underscore|vue)\.js\b",
    re.IGNORECASE,
)
_NOTE = (
    "The embedded model answered without using a tool, so nothing was read or changed, whatever "
    "its answer says. It is meant for trying things out; configure a larger model for real work."
)


def needs_tools(task: str) -> bool:
    """Return whether a task cannot be done by answering: it asks for an action or names a file."""
    asks_for_action = _ACTION.search(_QUESTION.sub("", task))
    return bool(asks_for_action or _FILE.search(_PROJECT.sub("", task)))


def stop_without_action(task: str) -> TurnStopped | None:
    """Return the end of a turn that made no call, if its task needed one."""
    return TurnStopped(stop="nothing_done", note=_NOTE) if needs_tools(task) else None
