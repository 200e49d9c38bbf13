"""Episodes as examples: the pattern that an opening shows, the text by which its calls are found,
its one-line form, and the tokens that an example costs, estimated by one tokenizer for all models.
"""

import json
from collections.abc import Callable, Iterator

from journeyman.records import Episode, Pattern, PatternId, Step
from journeyman.templates.agent_tools import file_path, parse_arguments, shell_command
from journeyman.templates.commands import commands_of

_MAX_PARTS = 40
_LONGEST_VALUE = 60


def episode_pattern(episode: Episode) -> Pattern:
    """Return an episode as the pattern that represents it in an opening."""
    return Pattern(
        id=PatternId(f"{episode.session}#{episode.number}"),
        kind="sequence",
        intent=episode.request,
        steps=episode.steps,
        source=episode.source,
        sessions=(episode.session,),
        first_seen=episode.at,
        last_seen=episode.at,
        tokens=episode.tokens,
        quarantined=episode.quarantined,
    )


def call_text(episode: Episode) -> str:
    """Return the calls of an episode in words: commands, their purposes, tools, arguments,
    files.
    """
    parts: list[str] = []
    for command in episode.commands:
        parts += filter(None, (command.name, command.purpose)) if command.worked else ()
    for step in episode.steps:
        if not shell_command(step.tool, step.arguments):
            parts.append(" ".join((step.tool, *parse_arguments(step.arguments))).replace("_", " "))
    parts += (file.path.rpartition("/")[2] for file in episode.files)
    return ". ".join(list(dict.fromkeys(parts))[:_MAX_PARTS])


def call_line(step: Step) -> str:
    """Return a call on one line: the command, the file, or the tool with its values."""
    commands = commands_of(shell_command(step.tool, step.arguments))
    if commands:
        return "; ".join(command.form for command in commands)
    path = file_path(step.tool, step.arguments)
    if path:
        return f"{step.tool} {path.rpartition('/')[2]}"
    values = []
    for key, value in parse_arguments(step.arguments).items():
        text = json.dumps(value, ensure_ascii=False)
        values.append(f"{key}={text if len(text) <= _LONGEST_VALUE else '…'}")
    return f"{step.tool}({', '.join(values)})"


CountTokens = Callable[[str], int]

_MESSAGE_OVERHEAD = 4
"""Tokens that a message costs in addition to its text: its role, and where it begins and ends."""

_CLOSING = 12
"""Tokens of the sentence that ends an example."""


def example_tokens(pattern: Pattern, count: CountTokens) -> int:
    """Return the tokens that the messages of one example cost."""
    messages = 2 + 2 * len(pattern.steps)
    return sum(map(count, example_texts(pattern))) + messages * _MESSAGE_OVERHEAD + _CLOSING


def example_texts(pattern: Pattern) -> Iterator[str]:
    """Yield the texts of one example that are counted."""
    yield pattern.intent
    for step in pattern.steps:
        yield from (step.tool, step.arguments, step.result)


def note_tokens(note: str, count: CountTokens) -> int:
    """Return the tokens that the system note costs."""
    return count(note) + _MESSAGE_OVERHEAD
