"""The judge: what became of a call, by the best evidence there is. The recorder's own flag comes
first, then the structure of the result, then the harness's words where harnesses put them, and
only then general text. The rules themselves are in the tables beside this module.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from journeyman.outcomes import structure, words
from journeyman.outcomes.commands import (
    answers_no,
    masked_failure,
    only_shows,
    runs_commands,
    shows_content,
)
from journeyman.outcomes.rules import Rule, excerpt
from journeyman.outcomes.words import complaint, kind_of, what_went_wrong
from journeyman.outcomes.wrapping import decoded, remains, unwrapped, without_heading
from journeyman.records import Call, Kind, Recorded, Status, Verdict
from journeyman.records.errors import NotACall

_NO_RESULT = Verdict(status="unknown", rule="no_result")
_EMPTY = Verdict(status="ok", rule="text.empty")
_PLAIN = Verdict(status="ok", rule="text.plain")

_DEEPEST = 4
"""How often a result may be wrapped in another one."""

_NOT_FAILED = ("refused", "interrupted")


def judge(call: Call) -> Verdict:
    """What became of a call."""
    if call.recorded and (found := _by_flag(call, call.recorded, call.result or "")):
        return found
    if call.result is None:
        return _NO_RESULT
    return _by_report(call, call.result, _DEEPEST)


def _by_flag(call: Call, recorded: Recorded, text: str) -> Verdict | None:
    """What the recorder itself said, if it said something."""
    if recorded.interrupted:
        return _verdict("interrupted", "cancelled", "recorded.interrupted", text)
    if recorded.is_error:
        return _bad(call, text, "recorded.is_error")
    if recorded.details.get("background_task_id"):
        return Verdict(status="unknown", kind="background", rule="recorded.background")
    if meant := recorded.details.get("return_code_interpretation"):
        # Claude Code writes down what an exit code means only where it is no error.
        return Verdict(status="ok", kind="no_match", rule="recorded.meaning", evidence=str(meant))
    if recorded.exit_code is not None and recorded.is_error is None:
        return _by_exit(call, recorded.exit_code, text, rule="recorded.exit_code")
    if recorded.is_error is False:
        begun = words.at_the_head(text)
        if begun is not None and begun.rule.kind == "background":
            return _verdict("unknown", "background", begun.rule.id, text)
        return _good(call, text, "recorded.is_error")
    said = structure.meaning(recorded.status)
    if said is None or (said.id == "ended" and text):
        return None
    if said.id == "failed":
        return _bad(call, text, "recorded.status")
    if said.status == "ok":
        return _good(call, text, "recorded.status")
    return _verdict(
        said.status, said.kind, "recorded.status", text.strip() or recorded.status or ""
    )


def _verdict(status: Status, kind: Kind, rule: str, evidence: str) -> Verdict:
    return Verdict(status=status, kind=kind, rule=rule, evidence=excerpt(evidence))


def _bad(call: Call, text: str, rule: str) -> Verdict:
    """Known to have gone wrong; the words tell how."""
    said = _by_report(call, text, _DEEPEST)
    if said.status in ("ok", "unknown"):
        kind, line = what_went_wrong(text)
        return _verdict("failed", kind or kind_of(line), rule, line)
    return Verdict(status=said.status, kind=said.kind, rule=rule, evidence=said.evidence)


def _good(call: Call, text: str, rule: str) -> Verdict:
    """Known to have gone well, unless the command itself hid that it did not."""
    if "||" in call.arguments and (line := masked_failure(call.arguments, text)):
        return Verdict(status="failed", kind="masked", rule="commands.masked", evidence=line)
    return Verdict(status="ok", rule=rule)


def _by_report(call: Call, text: str, depth: int) -> Verdict:
    """What the result says, by its structure, by the harness's words, by general text."""
    text = without_heading(text.strip())
    if not text:
        return _EMPTY
    # What a harness adds after an output is its own word, whatever the output looks like.
    if runs_commands(call.tool) and (closing := words.stated_at_the_end(text)):
        return _by_exit(call, closing.code, closing.output, rule=closing.id)
    first = text[0]
    if first == "<" and not text.startswith("<returncode>"):
        return _by_wrapping(call, text, depth)
    if first in '{["':
        return _by_structure(call, text, depth) or _by_words(call, text)
    return _by_words(call, text)


def _by_wrapping(call: Call, text: str, depth: int) -> Verdict:
    wrapping, inside = unwrapped(text)
    if wrapping is None or not depth:
        return _by_words(call, text)
    said = _by_report(call, inside, depth - 1)
    if wrapping.is_error and said.status in ("ok", "unknown"):
        return _verdict("failed", kind_of(inside), wrapping.id, inside)
    return said


def _by_structure(call: Call, text: str, depth: int) -> Verdict | None:
    try:
        value, is_all = decoded(text)
    except ValueError:
        left = remains(text) if text[0] == "{" else None
        if left is None:
            return None
        code, error = left
        if code is not None:
            return _by_exit(call, code, text, rule="fields.cut")
        return _verdict("failed", kind_of(error), "fields.cut", error)
    if not is_all and not _is_report_with_a_note(call, value):
        return None
    if isinstance(value, dict):
        said = _by_fields(call, value, depth)
        # A file may hold an object that looks like a report, but hardly one that says what failed.
        if said.status == "failed" and said.kind == "error" and _is_content(call, value):
            return Verdict(status="ok", rule="text.shown")
        return said
    if isinstance(value, str) and depth:
        return _by_report(call, value, depth - 1)
    if isinstance(value, list):
        if runs_commands(call.tool) and only_shows(call.arguments):
            return Verdict(status="ok", rule="text.shown")
        return _by_items(call, value, depth)
    return None


def _is_report_with_a_note(call: Call, value: Any) -> bool:
    """Whether an object before other text is what the harness reports, with a note behind it. Of
    what a command printed, the rest says as much as the beginning.
    """
    if not isinstance(value, dict) or structure.is_data(value):
        return False
    return not runs_commands(call.tool) or not structure.OF_COMMANDS.isdisjoint(value)


def _is_content(call: Call, fields: dict[str, Any]) -> bool:
    """Whether an object is what was to be shown: a JSON file, whatever stands in it."""
    if not structure.OF_COMMANDS.isdisjoint(fields):
        return False
    if runs_commands(call.tool):
        return only_shows(call.arguments)
    return shows_content(call.tool) and '.json"' in call.arguments


def _by_fields(call: Call, fields: dict[str, Any], depth: int) -> Verdict:
    report = structure.report(fields)
    if found := structure.verdict("held_back", report):
        return found
    code = structure.exit_code(fields)
    if code:
        if meant := structure.no_error_by_its_meaning(fields):
            return Verdict(status="ok", kind="no_match", rule="fields.meaning", evidence=meant)
        fine, output = structure.says_fine(fields), structure.printed(fields)
        return _by_exit(call, code, output, says_fine=fine, rule="fields.exit_code")
    if found := structure.verdict("reported", report):
        return found
    if code == 0:
        return _good(call, structure.printed(fields), "fields.exit_code")
    for name in ("output", "result"):
        if isinstance(fields.get(name), list) and structure.exit_code_among(fields[name]):
            return _by_items(call, fields[name], depth)
    return structure.verdict("success", report) or _by_data(call, fields, depth)


def _by_data(call: Call, fields: dict[str, Any], depth: int) -> Verdict:
    """An object that says nothing of the call: what it carries may."""
    if isinstance(fields.get("result"), dict) and "jsonrpc" in fields and depth:
        return _by_fields(call, fields["result"], depth - 1)
    inner = structure.inner_text(fields)
    if inner is not None and depth:
        return _by_report(call, inner, depth - 1)
    return Verdict(status="ok", rule="fields.data")


def _by_items(call: Call, items: list[Any], depth: int) -> Verdict:
    """A list: content blocks of text are judged as their text, objects by their errors."""
    texts = structure.block_texts(items)
    if texts is not None and depth:
        return _by_report(call, texts, depth - 1)
    code = structure.exit_code_among(items)
    if code:
        output = "\n".join(structure.printed(item) for item in items if isinstance(item, dict))
        return _by_exit(call, code, output, rule="items.exit_code")
    bad, of = structure.errors_among(items)
    if bad and bad == of:
        message = structure.error_text(next(item for item in items if isinstance(item, dict)))
        return _verdict("failed", kind_of(message), "items.all_errors", message)
    if bad:
        return _verdict("ok", "partial", "items.some_errors", f"{bad} of {of}")
    return Verdict(status="ok", rule="items.data")


def _by_words(call: Call, text: str) -> Verdict:
    if stated := words.stated_at_the_head(text):
        return _by_exit(call, stated.code, stated.output, rule=stated.id)
    found = words.at_the_head(text) or words.near_the_end(text)
    if found is not None and not _is_only_content(call, found.rule, text):
        rule = found.rule
        kind: Kind = rule.kind or (kind_of(text[:600]) if rule.status == "failed" else "")
        return _verdict(rule.status, kind, rule.id, _telling(text))
    if runs_commands(call.tool):
        if complained := complaint(call.arguments, text):
            rule, line = complained
            return _verdict("failed", rule.kind or kind_of(line), rule.id, line)
        return _good(call, text, "text.plain")
    if not shows_content(call.tool):
        said = words.in_a_message(text)
        if said is not None:
            return _verdict("failed", said.rule.kind or kind_of(text), said.rule.id, text)
    return _PLAIN


def _telling(text: str) -> str:
    """The part of a message that says what it is about: its first line; the second too where that
    is only a name; the last of a traceback.
    """
    if text.startswith("Traceback"):
        return what_went_wrong(text)[1]
    first, _, rest = text.partition("\n")
    if len(first) < _SHORTEST_LINE:
        first = f"{first} {rest.strip().partition(chr(10))[0]}"
    return first


_SHORTEST_LINE = 16
_MESSAGE_LINES = 3


def _is_only_content(call: Call, rule: Rule, text: str) -> bool:
    """Whether words of failure are the beginning of what a tool was to show. An error message has
    few lines, or an exception's name on a line of its own and its message.
    """
    if not rule.general or text.count("\n") <= _MESSAGE_LINES:
        return False
    if runs_commands(call.tool):
        return only_shows(call.arguments)
    is_named = rule.id == "words.exception" and " " not in text.partition("\n")[0].strip()
    return shows_content(call.tool) and not is_named


def _by_exit(call: Call, code: int, output: str, *, rule: str, says_fine: bool = False) -> Verdict:
    """By an exit code that was stated. `says_fine`: the harness says that it is no error."""
    if code == 0:
        return _good(call, output, rule)
    said = f"exit code {code}"
    inside = unwrapped(output.strip()).text
    if answers_no(call.arguments, code, inside) is not None:
        return _verdict("ok" if says_fine else "failed", "no_match", rule, said)
    kind, line = what_went_wrong(inside)
    evidence = f"{said}: {line}" if line else said
    ended = words.near_the_end(inside) or words.at_the_head(inside)
    if ended is not None and (ended.rule.kind == "timeout" or ended.rule.status in _NOT_FAILED):
        return _verdict(ended.rule.status, ended.rule.kind, rule, evidence)
    if meant := words.MEANING.get(code):
        return _verdict(meant.status, meant.kind, rule, evidence)
    return _verdict("failed", kind or kind_of(line, "exit_code"), rule, evidence)


UNREADABLE = "unreadable_line"
"""The rule of the verdict on a line that is no call."""

_MARK = b"\xef\xbb\xbf"
"""What some programs put before UTF-8."""


def given_call(given: Mapping[str, Any]) -> Call:
    """A call as people and programs hand it in: an object with `tool`, `arguments` and
    `result_text`. Other fields are not looked at, so that a judge can be measured on calls that
    carry their answer. Raises NotACall.
    """
    tool = given.get("tool")
    if not isinstance(tool, str):
        found = "no tool" if tool is None else f"a tool that is no text ({tool!r:.40})"
        raise NotACall(
            f'A call to judge has {found}. It needs "tool", "arguments" and "result_text".'
        )
    arguments = _text(given.get("arguments"))
    return Call(
        id="",
        tool=tool,
        arguments="{}" if arguments is None else arguments,
        result=_text(given.get("result_text")),
    )


def verdict_on_line(line: bytes) -> Verdict:
    """The verdict on a call in one line of JSON. A line that is no call is unknown, and the
    evidence says why.
    """
    try:
        given = msgspec.json.decode(line.removeprefix(_MARK)) if line.strip() else None
        if isinstance(given, dict):
            return judge(given_call(given))
        reason = "The line is JSON, but not an object." if line.strip() else "The line is empty."
    except NotACall as error:
        reason = str(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = f"The line is not JSON: {error}"
    return Verdict(status="unknown", rule=UNREADABLE, evidence=reason)


def _text(value: Any) -> str | None:
    """A value as a harness would have shown it: text as it is, all else as JSON."""
    if value is None or isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except TypeError as error:
        raise NotACall(f"A call to judge holds what JSON cannot: {error}") from error
