"""Episodes as examples: the pattern that an opening shows, the text that its calls are found by,
and the same in one line.
"""

import json
from collections.abc import Iterator

from journeyman.records import Episode, Pattern, PatternId, Step
from journeyman.templates.commands import commands_of
from journeyman.templates.tool_translation import file_path, shell_command
from journeyman.templates.translation.argument_fields import as_object

_MOST_NAMED = 40
_LONGEST_VALUE = 60


def episode_pattern(episode: Episode) -> Pattern:
    """An episode as the pattern that stands for it in an opening."""
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
    """What the calls of an episode were, in words: commands and what they were for, tools with the
    names of their arguments, names of files.
    """
    said: dict[str, None] = {}
    for command in episode.commands:
        if command.worked:
            said[command.name] = None
            if command.purpose:
                said[command.purpose] = None
    for step in episode.steps:
        if not shell_command(step.tool, step.arguments):
            names = " ".join((step.tool, *as_object(step.arguments)))
            said[names.replace("_", " ")] = None
    for file in episode.files:
        said[file.path.rpartition("/")[2]] = None
    return ". ".join(list(said)[:_MOST_NAMED])


def call_line(step: Step) -> str:
    """One call on one line: the command, the file, or the tool with its values."""
    commands = commands_of(shell_command(step.tool, step.arguments))
    if commands:
        return "; ".join(one.form for one in commands)
    path = file_path(step.tool, step.arguments)
    if path:
        return f"{step.tool} {path.rpartition('/')[2]}"
    return f"{step.tool}({', '.join(_values(step.arguments))})"


def _values(arguments: str) -> Iterator[str]:
    for key, value in as_object(arguments).items():
        text = json.dumps(value, ensure_ascii=False)
        yield f"{key}={text if len(text) <= _LONGEST_VALUE else '…'}"
