"""The judge: what became of a call, by the best evidence there is. The recorder's own flag comes
first, then the structure of the result, then the harness's words where harnesses put them, and
only then general text. The rules themselves are in the tables beside this module.
"""

from typing import Any

from journeyman.outcomes import exits, structure, words
from journeyman.outcomes.commands import answers_no, masked_failure, only_shows
from journeyman.outcomes.decoding import decoded, remains
from journeyman.outcomes.fields import (
    OF_COMMANDS,
    block_texts,
    error_text,
    errors_among,
    exit_code,
    exit_code_among,
    inner_text,
    no_error_by_its_meaning,
    printed,
    says_fine,
)
from journeyman.outcomes.kinds import kind_of
from journeyman.outcomes.programs import complaint, what_went_wrong
from journeyman.outcomes.rule import Rule, excerpt
from journeyman.outcomes.statuses import ENDED, FAILED, GOOD, meaning
from journeyman.outcomes.tools import runs_commands, shows_content
from journeyman.outcomes.wrapping import unwrapped, without_heading
from journeyman.records import Call, Kind, Recorded, Status, Verdict

_NO_RESULT = Verdict(status="unknown", rule="no_result")
_EMPTY = Verdict(status="ok", rule="text.empty")
_PLAIN = Verdict(status="ok", rule="text.plain")

_DEEPEST = 4
"""How often a result may be wrapped in another one."""

_NOT_FAILED = ("refused", "interrupted")


def judge(call: Call) -> Verdict:
    """What became of a call."""
    result = call.result
    if call.recorded is not None:
        found = _by_flag(call, call.recorded, result or "")
        if found is not None:
            return found
    if result is None:
        return _NO_RESULT
    return _by_report(call, result, _DEEPEST)


def _by_flag(call: Call, recorded: Recorded, text: str) -> Verdict | None:
    """What the recorder itself said, if it said something."""
    if recorded.interrupted:
        return Verdict(
            status="interrupted",
            kind="cancelled",
            rule="recorded.interrupted",
            evidence=excerpt(text),
        )
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
            return Verdict(
                status="unknown", kind="background", rule=begun.rule.id, evidence=excerpt(text)
            )
        return _good(call, text, "recorded.is_error")
    said = meaning(recorded.status)
    if said is FAILED:
        return _bad(call, text, "recorded.status")
    if said is GOOD or (said is ENDED and not text):
        return _good(call, text, "recorded.status")
    if said is None or said is ENDED:
        return None
    evidence = excerpt(text) or recorded.status or ""
    return Verdict(status=said.status, kind=said.kind, rule="recorded.status", evidence=evidence)


def _bad(call: Call, text: str, rule: str) -> Verdict:
    """Known to have gone wrong; the words tell how."""
    said = _by_report(call, text, _DEEPEST)
    if said.status in ("ok", "unknown"):
        known, line = what_went_wrong(text)
        kind = (known.kind if known else "") or kind_of(line)
        return Verdict(status="failed", kind=kind, rule=rule, evidence=excerpt(line))
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
    if runs_commands(call.tool):
        # What a harness adds after an output is its own word, whatever the output looks like.
        closing = exits.stated_at_the_end(text)
        if closing is not None:
            return _by_exit(call, closing.code, closing.output, rule=f"exits.{closing.id}")
    first = text[0]
    if first == "<" and not text.startswith("<returncode>"):
        return _by_wrapping(call, text, depth)
    if first in '{["':
        told = _by_structure(call, text, depth)
        if told is not None:
            return told
    return _by_words(call, text)


def _by_wrapping(call: Call, text: str, depth: int) -> Verdict:
    wrapping, inside = unwrapped(text)
    if wrapping is None or not depth:
        return _by_words(call, text)
    said = _by_report(call, inside, depth - 1)
    if wrapping.is_error and said.status in ("ok", "unknown"):
        rule = f"wrapping.{wrapping.id}"
        return Verdict(status="failed", kind=kind_of(inside), rule=rule, evidence=excerpt(inside))
    return said


def _by_structure(call: Call, text: str, depth: int) -> Verdict | None:
    try:
        value, is_all = decoded(text)
    except ValueError:
        left = remains(text) if text[0] == "{" else None
        if left is None:
            return None
        if left.exit_code is not None:
            return _by_exit(call, left.exit_code, text, rule="fields.cut")
        return Verdict(
            status="failed",
            kind=kind_of(left.error),
            rule="fields.cut",
            evidence=excerpt(left.error),
        )
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
    return not runs_commands(call.tool) or not OF_COMMANDS.isdisjoint(value)


def _is_content(call: Call, fields: dict[str, Any]) -> bool:
    """Whether an object is what was to be shown: a JSON file, whatever stands in it."""
    if not OF_COMMANDS.isdisjoint(fields):
        return False
    if runs_commands(call.tool):
        return only_shows(call.arguments)
    return shows_content(call.tool) and '.json"' in call.arguments


def _by_fields(call: Call, fields: dict[str, Any], depth: int) -> Verdict:
    if structure.is_data(fields):
        return _by_data(call, fields, depth)
    report = structure.report(fields)
    for rule in structure.KEPT_FROM_RUNNING:
        if rule.holds(report):
            return structure.verdict(rule, report)
    code = exit_code(fields)
    if code:
        if meant := no_error_by_its_meaning(fields):
            return Verdict(status="ok", kind="no_match", rule="fields.meaning", evidence=meant)
        fine, output = says_fine(fields), printed(fields)
        return _by_exit(call, code, output, says_fine=fine, rule="fields.exit_code")
    for rule in structure.REPORTED:
        if rule.holds(report):
            return structure.verdict(rule, report)
    if code == 0:
        return _good(call, printed(fields), "fields.exit_code")
    for name in ("output", "result"):
        if isinstance(fields.get(name), list) and exit_code_among(fields[name]):
            return _by_items(call, fields[name], depth)
    if structure.SUCCESS.holds(report):
        return structure.verdict(structure.SUCCESS, report)
    return _by_data(call, fields, depth)


def _by_data(call: Call, fields: dict[str, Any], depth: int) -> Verdict:
    """An object that says nothing of the call: what it carries may."""
    if isinstance(fields.get("result"), dict) and "jsonrpc" in fields and depth:
        return _by_fields(call, fields["result"], depth - 1)
    inner = inner_text(fields)
    if inner is not None and depth:
        return _by_report(call, inner, depth - 1)
    return Verdict(status="ok", rule=structure.DATA.id)


def _by_items(call: Call, items: list[Any], depth: int) -> Verdict:
    """A list: content blocks of text are judged as their text, objects by their errors."""
    texts = block_texts(items)
    if texts is not None and depth:
        return _by_report(call, texts, depth - 1)
    code = exit_code_among(items)
    if code:
        output = "\n".join(printed(item) for item in items if isinstance(item, dict))
        return _by_exit(call, code, output, rule="items.exit_code")
    bad, of = errors_among(items)
    if bad and bad == of:
        message = error_text(next(item for item in items if isinstance(item, dict)))
        return Verdict(
            status="failed",
            kind=kind_of(message),
            rule="items.all_errors",
            evidence=excerpt(message),
        )
    if bad:
        return Verdict(
            status="ok", kind="partial", rule="items.some_errors", evidence=f"{bad} of {of}"
        )
    return Verdict(status="ok", rule="items.data")


def _by_words(call: Call, text: str) -> Verdict:
    stated = exits.stated_at_the_head(text)
    if stated is not None:
        return _by_exit(call, stated.code, stated.output, rule=f"exits.{stated.id}")
    found = words.at_the_head(text) or words.near_the_end(text)
    if found is not None and not _is_only_content(call, found.rule, text):
        rule = found.rule
        kind: Kind = rule.kind or (kind_of(text[:600]) if rule.status == "failed" else "")
        return Verdict(status=rule.status, kind=kind, rule=rule.id, evidence=_telling(text))
    if runs_commands(call.tool):
        complained = complaint(call.arguments, text)
        if complained is not None and complained.rule is not None:
            rule, line = complained.rule, complained.line
            kind = rule.kind or kind_of(line)
            return Verdict(status="failed", kind=kind, rule=rule.id, evidence=excerpt(line))
        return _good(call, text, "text.plain")
    if not shows_content(call.tool):
        said = words.in_a_message(text)
        if said is not None:
            kind = said.rule.kind or kind_of(text)
            return Verdict(status="failed", kind=kind, rule=said.rule.id, evidence=excerpt(text))
    return _PLAIN


def _telling(text: str) -> str:
    """The part of a message that says what it is about: its first line; the second too where that
    is only a name; the last of a traceback.
    """
    if text.startswith("Traceback"):
        return excerpt(what_went_wrong(text).line)
    first, _, rest = text.partition("\n")
    if len(first) < _SHORTEST_LINE:
        first = f"{first} {rest.strip().partition(chr(10))[0]}"
    return excerpt(first)


_SHORTEST_LINE = 16
_MESSAGE_LINES = 3


def _is_only_content(call: Call, rule: Rule, text: str) -> bool:
    """Whether words of failure are the beginning of what a tool was to show. An error message has
    few lines, or an exception's name on a line of its own and its message.
    """
    if rule.id not in words.GENERAL or text.count("\n") <= _MESSAGE_LINES:
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
        status: Status = "ok" if says_fine else "failed"
        return Verdict(status=status, kind="no_match", rule=rule, evidence=said)
    known, line = what_went_wrong(inside)
    evidence = excerpt(f"{said}: {line}" if line else said)
    ended = words.near_the_end(inside) or words.at_the_head(inside)
    if ended is not None and (ended.rule.kind == "timeout" or ended.rule.status in _NOT_FAILED):
        status, kind = ended.rule.status, ended.rule.kind
        return Verdict(status=status, kind=kind, rule=rule, evidence=evidence)
    meant = exits.MEANING.get(code)
    if meant is not None:
        return Verdict(status=meant.status, kind=meant.kind, rule=rule, evidence=evidence)
    kind = (known.kind if known else "") or kind_of(line, "exit_code")
    return Verdict(status="failed", kind=kind, rule=rule, evidence=evidence)
