"""Judges a call by the best evidence available: the recorder's own flag, then the structure of the
result, then phrases that harnesses use, then general text. The rules are in `rules.toml`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from journeyman.outcomes import phrases, structure
from journeyman.outcomes.commands import (
    answers_no,
    hidden_run,
    masked_failure,
    only_shows,
    runs_commands,
    shows_content,
)
from journeyman.outcomes.envelope import decoded, truncated_fields, unwrapped, without_heading
from journeyman.outcomes.phrases import failure_line, find_complaint, kind_of
from journeyman.outcomes.rules import RULES, Rule, excerpt
from journeyman.records import Call, ResultFlags, Verdict, VerdictKind, VerdictStatus
from journeyman.records.errors import NotACall

_NO_RESULT = Verdict(status="unknown", rule="no_result")
_PLAIN = Verdict(status="ok", rule="text.plain")

_ARROW = "→"
_LONGEST_NUMBER = 8
"""Claude Code puts the number of a line and an arrow before each line of a file that it shows."""

_DEEPEST = 4
"""How many envelopes deep a result is read."""

_NOT_RUN = next(row for row in RULES["status"] if row.id == "not_run")
_ERROR_ALONE = RULES["error_alone"][0]
_HERMES_TERMINAL = "terminal"


def judge(call: Call) -> Verdict:
    """Return the verdict on a call."""
    if call.recorded and (verdict := _by_flag(call, call.recorded, call.result or "")):
        return verdict
    if call.result is None:
        return _NO_RESULT
    return _by_result(call, call.result, _DEEPEST)


def _by_flag(call: Call, recorded: ResultFlags, text: str) -> Verdict | None:
    """Judge by what the recorder itself noted; None if it noted nothing."""
    if recorded.refused_by:
        return phrases.recorded_refusal(recorded.refused_by, unwrapped(text.strip()).text)
    if recorded.status == "invalid":
        verdict = _failed(call, text, "recorded.status")
        kind: VerdictKind = "invalid_arguments" if verdict.kind != "unknown_tool" else verdict.kind
        return msgspec.structs.replace(verdict, status="invalid", kind=kind)
    if recorded.interrupted:
        return _verdict("interrupted", "cancelled", "recorded.interrupted", text)
    if recorded.is_error:
        verdict = _failed(call, text, "recorded.is_error")
        if recorded.status == "not_run" and verdict.status == "failed":
            return phrases.refusal(_NOT_RUN, text, rule="recorded.not_run")
        return verdict
    if recorded.details.get("background_task_id"):
        return Verdict(status="unknown", kind="background", rule="recorded.background")
    if meaning := recorded.details.get("return_code_interpretation"):
        # Claude Code records the meaning of an exit code only if it is not an error.
        return Verdict(status="ok", kind="no_match", rule="recorded.meaning", evidence=str(meaning))
    if recorded.exit_code is not None and recorded.is_error is None:
        return _by_exit(call, recorded.exit_code, text, rule="recorded.exit_code")
    if recorded.is_error is False:
        match = phrases.at_head(text)
        if match is not None and match.rule.status == "unknown":
            return _verdict("unknown", match.rule.kind, match.rule.id, text)
        return _succeeded(call, text, "recorded.is_error")
    rule = structure.status_rule(recorded.status)
    if rule is None or (rule.id == "ended" and text):
        return None
    if rule.id == "failed":
        return _failed(call, text, "recorded.status")
    if rule.status == "ok":
        return _succeeded(call, text, "recorded.status")
    evidence = text.strip() or recorded.status or ""
    if rule.status == "refused":
        return phrases.refusal(rule, evidence, rule="recorded.status")
    return _verdict(rule.status, rule.kind, "recorded.status", evidence)


def _verdict(status: VerdictStatus, kind: VerdictKind, rule: str, evidence: str) -> Verdict:
    return Verdict(status=status, kind=kind, rule=rule, evidence=excerpt(evidence))


def _failed(call: Call, text: str, rule: str) -> Verdict:
    """Return the verdict on a call that is known to have failed; its text determines how."""
    verdict = _by_result(call, text, _DEEPEST)
    if verdict.status in ("ok", "unknown") and verdict.kind != "no_match":
        kind, line = failure_line(text)
        return _verdict("failed", kind or kind_of(line), rule, line)
    return msgspec.structs.replace(verdict, rule=rule)


def _succeeded(call: Call, text: str, rule: str) -> Verdict:
    """Return the verdict on a call that is reported as successful, unless the command hides how it
    ended.
    """
    if "||" in call.arguments and (line := masked_failure(call.arguments, text)):
        return Verdict(status="failed", kind="masked", rule="commands.masked", evidence=line)
    if runs_commands(call.tool) and (run := hidden_run(call.arguments)):
        return phrases.run_verdict(run, text)
    return Verdict(status="ok", rule=rule)


def _by_result(call: Call, text: str, depth: int) -> Verdict:
    """Judge by the result: its structure, the harness's phrases, then general text."""
    text = without_heading(text.strip())
    if not text:
        return _succeeded(call, text, "text.empty")
    # An exit code that a harness appends counts, whatever the output before it looks like.
    if runs_commands(call.tool) and (stated := phrases.exit_at_end(text)):
        return _by_exit(call, stated.code, stated.output, rule=stated.id)
    first = text[0]
    if first == "<" and not text.startswith("<returncode>"):
        return _by_envelope(call, text, depth)
    if first in '{["':
        return _by_structure(call, text, depth) or _by_phrases(call, text)
    return _by_phrases(call, text)


def _by_envelope(call: Call, text: str, depth: int) -> Verdict:
    envelope, content = unwrapped(text)
    if envelope is None or not depth:
        return _by_phrases(call, text)
    verdict = _by_result(call, content, depth - 1)
    if envelope.is_error and verdict.status in ("ok", "unknown"):
        return _verdict("failed", kind_of(content), envelope.id, content)
    return verdict


def _by_structure(call: Call, text: str, depth: int) -> Verdict | None:
    try:
        value, is_all = decoded(text)
    except ValueError:
        remainder = truncated_fields(text) if text[0] == "{" else None
        if remainder is None:
            return None
        code, error = remainder
        if code is not None:
            return _by_exit(call, code, text, rule="fields.cut")
        return _verdict("failed", kind_of(error), "fields.cut", error)
    if not is_all and not _is_report_with_a_note(call, value):
        return None
    if isinstance(value, dict):
        verdict = _by_fields(call, value, depth)
        # A file may hold an object that looks like a report, but rarely one with a specific error.
        if verdict.status == "failed" and verdict.kind == "error" and _is_content(call, value):
            return Verdict(status="ok", rule="text.shown")
        return verdict
    if isinstance(value, str) and depth:
        return _by_result(call, value, depth - 1)
    if isinstance(value, list):
        if runs_commands(call.tool) and only_shows(call.arguments):
            return Verdict(status="ok", rule="text.shown")
        return _by_items(call, value, depth)
    return None


def _is_report_with_a_note(call: Call, value: Any) -> bool:
    """Return whether an object followed by other text is the harness's report with a note. In the
    output of a command, the text after it counts as much as the object.
    """
    if not isinstance(value, dict) or structure.is_data(value):
        return False
    return not runs_commands(call.tool) or not structure.COMMAND_FIELDS.isdisjoint(value)


def _is_content(call: Call, fields: dict[str, Any]) -> bool:
    """Return whether an object is content that was requested, such as a JSON file."""
    if not structure.COMMAND_FIELDS.isdisjoint(fields):
        return False
    if runs_commands(call.tool):
        return only_shows(call.arguments)
    return shows_content(call.tool) and '.json"' in call.arguments


def _by_fields(call: Call, fields: dict[str, Any], depth: int) -> Verdict:
    if structure.is_data(fields):
        return _by_data(call, fields, depth)
    report = structure.report(fields)
    if verdict := structure.verdict("held_back", report):
        return verdict
    if _is_error_alone(call, report):
        return phrases.refusal(_ERROR_ALONE, report.error)
    code = structure.exit_code(fields)
    if code:
        if meaning := structure.harmless_meaning(fields):
            return Verdict(status="ok", kind="no_match", rule="fields.meaning", evidence=meaning)
        return _by_exit(call, code, structure.output_text(fields), rule="fields.exit_code")
    if verdict := structure.verdict("reported", report):
        return verdict
    if code == 0:
        return _succeeded(call, structure.output_text(fields), "fields.exit_code")
    for name in ("output", "result"):
        if isinstance(fields.get(name), list) and structure.exit_code_among(fields[name]):
            return _by_items(call, fields[name], depth)
    return structure.verdict("success", report) or _by_data(call, fields, depth)


def _is_error_alone(call: Call, report: structure.Report) -> bool:
    """Return whether Hermes' terminal answers with an error, in words of no known failure, and
    without the output and exit code that it has whenever it ran.
    """
    is_alone = call.tool == _HERMES_TERMINAL and report.fields.keys() == {"error"}
    return is_alone and bool(report.error) and phrases.at_head(report.error) is None


def _by_data(call: Call, fields: dict[str, Any], depth: int) -> Verdict:
    """Judge an object that does not describe the call itself by the text it carries."""
    if isinstance(fields.get("result"), dict) and "jsonrpc" in fields and depth:
        return _by_fields(call, fields["result"], depth - 1)
    inner = structure.inner_text(fields)
    if inner is not None and depth:
        return _by_result(call, inner, depth - 1)
    return Verdict(status="ok", rule="fields.data")


def _by_items(call: Call, items: list[Any], depth: int) -> Verdict:
    """Judge a list: content blocks by their text, objects by their errors."""
    texts = structure.block_texts(items)
    if texts is not None and depth:
        return _by_result(call, texts, depth - 1)
    code = structure.exit_code_among(items)
    if code:
        output = "\n".join(structure.output_text(item) for item in items if isinstance(item, dict))
        return _by_exit(call, code, output, rule="items.exit_code")
    failed, total = structure.count_errors(items)
    if failed and failed == total:
        message = structure.error_text(next(item for item in items if isinstance(item, dict)))
        return _verdict("failed", kind_of(message), "items.all_errors", message)
    if failed:
        return _verdict("ok", "partial", "items.some_errors", f"{failed} of {total}")
    return Verdict(status="ok", rule="items.data")


def _by_phrases(call: Call, text: str) -> Verdict:
    if text[0].isdigit() and _ARROW in text[:_LONGEST_NUMBER] and shows_content(call.tool):
        return _PLAIN
    if stated := phrases.exit_at_head(text):
        return _by_exit(call, stated.code, stated.output, rule=stated.id)
    match = phrases.at_head(text) or phrases.near_end(text)
    if match is not None and not _is_only_content(call, match.rule, text):
        rule = match.rule
        if rule.status == "refused":
            return phrases.refusal(rule, text, evidence=_summary_line(text))
        kind: VerdictKind = rule.kind or (kind_of(text[:600]) if rule.status == "failed" else "")
        return _verdict(rule.status, kind, rule.id, _summary_line(text))
    if runs_commands(call.tool):
        verdict = _succeeded(call, text, "text.plain")
        if verdict.rule != "text.plain":
            return verdict
        if complaint := find_complaint(call.arguments, text):
            rule, line = complaint
            return _verdict("failed", rule.kind or kind_of(line), rule.id, line)
        bare = phrases.bare_failure(text, is_content=True)
        if bare and not only_shows(call.arguments):
            return _verdict("failed", kind_of(text), bare.id, text)
        return verdict
    is_content = shows_content(call.tool)
    if bare := phrases.bare_failure(text, is_content=is_content):
        return _verdict("failed", kind_of(text), bare.id, text)
    if not is_content:
        match = phrases.in_message(text)
        if match is not None:
            return _verdict("failed", match.rule.kind or kind_of(text), match.rule.id, text)
    return _PLAIN


def _summary_line(text: str) -> str:
    """Return the line of a message that says most: the first, joined with the second if it is only
    a name; of a traceback the last.
    """
    if text.startswith("Traceback"):
        return failure_line(text)[1]
    first, _, rest = text.partition("\n")
    if len(first) < _SHORTEST_LINE:
        first = f"{first} {rest.strip().partition(chr(10))[0]}"
    return first


_SHORTEST_LINE = 16
_MESSAGE_LINES = 3


def _is_only_content(call: Call, rule: Rule, text: str) -> bool:
    """Return whether a failure phrase is just the start of content that a tool shows. An error
    message has few lines, or an exception name on its own line followed by the message.
    """
    if not rule.general or text.count("\n") <= _MESSAGE_LINES:
        return False
    if runs_commands(call.tool):
        return only_shows(call.arguments)
    is_named = rule.id == "words.exception" and " " not in text.partition("\n")[0].strip()
    return shows_content(call.tool) and not is_named


def _by_exit(call: Call, code: int, output: str, *, rule: str) -> Verdict:
    """Judge by a stated exit code."""
    if code == 0:
        return _succeeded(call, output, rule)
    stated = f"exit code {code}"
    content = unwrapped(output.strip()).text
    if answers_no(call.arguments, code, content) is not None:
        verdict = _succeeded(call, content, rule)
        if verdict.status == "failed":
            return verdict
        return _verdict(verdict.status, "no_match", rule, stated)
    kind, line = failure_line(content)
    evidence = f"{stated}: {line}" if line else stated
    match = phrases.near_end(content) or phrases.at_head(content)
    if match is not None and match.rule.status == "refused":
        return phrases.refusal(match.rule, content, rule=rule, evidence=evidence)
    # A program cannot end with a code below zero: the harness states that it did not run.
    not_run = match is not None and match.rule.status == "invalid" and code < 0
    if match is not None and (
        match.rule.kind == "timeout" or match.rule.status == "interrupted" or not_run
    ):
        return _verdict(match.rule.status, match.rule.kind, rule, evidence)
    if meaning := phrases.EXIT_MEANINGS.get(code):
        return _verdict(meaning.status, meaning.kind, rule, evidence)
    return _verdict("failed", kind or kind_of(line, "exit_code"), rule, evidence)


UNREADABLE = "unreadable_line"
"""The rule of the verdict on a line that is not a call."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def call_from_fields(fields: Mapping[str, Any]) -> Call:
    """Return a call from an object with `tool`, `arguments` and `result_text`. Other fields are
    ignored, so that labelled calls can be judged. Raise NotACall.
    """
    tool = fields.get("tool")
    if not isinstance(tool, str):
        problem = "no tool" if tool is None else f"a tool that is not text ({tool!r:.40})"
        raise NotACall(
            f'The call to judge has {problem}. It needs "tool", "arguments" and "result_text".'
        )
    arguments = _text(fields.get("arguments"))
    return Call(
        id="",
        tool=tool,
        arguments="{}" if arguments is None else arguments,
        result=_text(fields.get("result_text")),
    )


def verdict_on_line(line: bytes) -> Verdict:
    """Return the verdict on a call in one line of JSON. A line that is not a call is `unknown`,
    with the reason as evidence.
    """
    try:
        value = msgspec.json.decode(line.removeprefix(_BYTE_ORDER_MARK)) if line.strip() else None
        if isinstance(value, dict):
            return judge(call_from_fields(value))
        reason = "The line is JSON, but not an object." if line.strip() else "The line is empty."
    except NotACall as error:
        reason = str(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = f"The line is not JSON: {error}"
    return Verdict(status="unknown", rule=UNREADABLE, evidence=reason)


def _text(value: Any) -> str | None:
    """Return a value as a harness would show it: text unchanged, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except TypeError as error:
        raise NotACall(
            f"The call to judge contains a value that JSON cannot represent: {error}. Pass text, "
            "numbers, lists and objects."
        ) from error
