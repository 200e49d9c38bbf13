"""What Claude Code records about calls: success flags of the result, who refused it, and what hooks
did, in lines of the type `attachment`: the context that they added for the model, and how they
rewrote a call, which the line of the call itself does not show.
"""

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct

from journeyman.logs.fields import (
    as_json,
    as_text,
    json_value,
    only_object,
    only_text,
    whole_number,
)
from journeyman.records import Refuser, ResultFlags
from journeyman.records.host import marked_opening

_UNSET = Raw()


class _Flags(Struct, rename="camel"):
    """The small flags in `toolUseResult`, the rest of which repeats the result. Other tools have
    fields of the same names and other types. `code` is the HTTP status of a web page.
    """

    interrupted: Any = None
    success: Any = None
    status: Any = None
    code: Any = None
    exit_code: Any = None
    truncated: Any = None
    user_modified: Any = None
    background_task_id: Any = None
    return_code_interpretation: Any = None
    duration_ms: Any = None
    total_duration_ms: Any = None


_DETAILS = {
    "truncated": bool,
    "user_modified": bool,
    "background_task_id": str,
    "return_code_interpretation": str,
    "code": int,
}


def refuser(permission: Any, denial_kind: Any) -> Refuser:
    """Return who refused a call, from the two fields that newer versions add to its result's line;
    empty if no one did.
    """
    permission = only_object(permission)
    if permission.get("decision") != "reject" and not denial_kind:
        return ""
    source = permission.get("source")
    if "hook" in (source, permission.get("reasonType")):
        return "hook"
    origin = only_text(permission.get("reasonCode")).partition(":")[0]
    if origin == "mode":
        return "mode"
    if origin == "rule":
        return "rule"
    if source == "config" and denial_kind == "user-rejected":
        return "nobody"  # it needed an approval, and there was no one to ask
    is_person = denial_kind == "user-rejected" or source == "user_reject"
    return "person" if is_person else "rule"


_NO_HEADER = re.compile(r"(?!Exit code -?\d|<tool_use_error>)")
_STATES_EXIT_CODES = re.compile(r"[2-9]\.|\d\d")
"""Versions that begin the result of a failed command with its exit code: from 2.0 on."""


def is_not_run(tool: str, text: str, result: Raw, version: str) -> bool:
    """Return whether an error shows that the call did not run. Versions without the fields above
    record what a hook says as the whole error; a command that ran and failed has a header.
    """
    if bytes(memoryview(result)) == b'"User rejected tool use"':
        return True
    is_error_text = bytes(memoryview(result)[:7]) == b'"Error:'
    is_bare = tool == "Bash" and is_error_text and _NO_HEADER.match(text) is not None
    return is_bare and _STATES_EXIT_CODES.match(version) is not None


_decode_flags = msgspec.json.Decoder(_Flags).decode


def text_of(raw: Raw) -> str:
    """Return undecoded JSON as text. The decoder does not validate the characters of values that
    it skips, so broken ones are replaced here.
    """
    return bytes(raw).decode("utf-8", "replace")


def recorded_flags(result: Raw, *, is_error: bool | None) -> ResultFlags | None:
    """Return the flags of a result: those the model saw, and those in `toolUseResult`."""
    # An error is recorded as text, and some results are lists.
    is_object = bytes(memoryview(result)[:1]) == b"{"
    flags = _decode_flags(text_of(result)) if is_object else _Flags()
    if is_error is None and flags.success is False:
        is_error = True
    values = ((name, kind, getattr(flags, name)) for name, kind in _DETAILS.items())
    details: dict[str, Any] = {
        name: value for name, kind, value in values if value and type(value) is kind
    }
    for duration in (flags.duration_ms, flags.total_duration_ms):
        if type(duration) in (int, float):
            details["duration_s"] = duration / 1000
            break
    recorded = ResultFlags(
        is_error=is_error,
        exit_code=whole_number(flags.exit_code),
        status=only_text(flags.status) or None,
        interrupted=True if flags.interrupted is True else None,
        details=details,
    )
    return None if recorded == ResultFlags() else recorded


class Attachment(Struct, rename="camel", gc=False):
    """The fields of an attachment that hooks use. Others have fields of the same names with other
    types, so the values are decoded only where they are needed.
    """

    type: Raw = _UNSET
    hook_event: Raw = _UNSET
    tool_use_id: Raw = msgspec.field(name="toolUseID", default=_UNSET)
    stdout: Raw = _UNSET
    content: Raw = _UNSET


def opening_of(attachment: Attachment) -> str:
    """Return the id of the opening that a hook gave the model, or "" if it gave none."""
    if _value(attachment.type) != "hook_additional_context":
        return ""
    return marked_opening(as_text(_value(attachment.content)))


def rewritten_call(attachment: Attachment) -> tuple[str, str] | None:
    """Return the id of a call and the arguments that it ran with, if a hook changed them."""
    if (_value(attachment.type), _value(attachment.hook_event)) != ("hook_success", "PreToolUse"):
        return None
    call_id, printed = _value(attachment.tool_use_id), _value(attachment.stdout)
    if not isinstance(call_id, str) or not isinstance(printed, str):
        return None
    said = only_object(only_object(json_value(printed)).get("hookSpecificOutput"))
    arguments = said.get("updatedInput")
    if said.get("permissionDecision") == "deny" or not isinstance(arguments, dict):
        return None
    return call_id, as_json(arguments)


def _value(raw: Raw) -> Any:
    return None if raw is _UNSET else json_value(text_of(raw))
