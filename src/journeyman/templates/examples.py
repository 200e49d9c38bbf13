"""Episodes as examples: the pattern that an opening shows, the text that its calls are found by,
the same in one line, and what an example costs in tokens: an estimate, by one tokenizer for all.
"""

import json
from collections.abc import Callable, Iterator

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
    """The calls of an episode in words: commands, their purposes, tools, arguments, files."""
    said: list[str] = []
    for command in episode.commands:
        said += filter(None, (command.name, command.purpose)) if command.worked else ()
    for step in episode.steps:
        if not shell_command(step.tool, step.arguments):
            said.append(" ".join((step.tool, *as_object(step.arguments))).replace("_", " "))
    said += (file.path.rpartition("/")[2] for file in episode.files)
    return ". ".join(list(dict.fromkeys(said))[:_MOST_NAMED])


def call_line(step: Step) -> str:
    """One call on one line: the command, the file, or the tool with its values."""
    commands = commands_of(shell_command(step.tool, step.arguments))
    if commands:
        return "; ".join(one.form for one in commands)
    path = file_path(step.tool, step.arguments)
    if path:
        return f"{step.tool} {path.rpartition('/')[2]}"
    values = []
    for key, value in as_object(step.arguments).items():
        text = json.dumps(value, ensure_ascii=False)
        values.append(f"{key}={text if len(text) <= _LONGEST_VALUE else '…'}")
    return f"{step.tool}({', '.join(values)})"


CountTokens = Callable[[str], int]

_A_MESSAGE = 4
"""What a message costs beside its text: its role and where it begins and ends."""

_CLOSING = 12
"""The sentence that ends an example."""


def tokens_of(pattern: Pattern, count: CountTokens) -> int:
    """What the messages of one example cost."""
    messages = 2 + 2 * len(pattern.steps)
    return sum(map(count, texts_of(pattern))) + messages * _A_MESSAGE + _CLOSING


def texts_of(pattern: Pattern) -> Iterator[str]:
    """The texts of one example that are counted."""
    yield pattern.intent
    for step in pattern.steps:
        yield from (step.tool, step.arguments, step.result)


def tokens_of_note(note: str, count: CountTokens) -> int:
    """What the system note costs."""
    return count(note) + _A_MESSAGE
