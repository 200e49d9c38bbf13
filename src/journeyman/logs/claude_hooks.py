"""What Claude Code records about hooks, in lines of the type `attachment`: the context that they
added for the model, and how they rewrote a call, which the line of the call itself does not show.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from journeyman.logs.fields import as_json, as_text, json_value, only_object
from journeyman.records.opening_marks import marked_opening

_UNSET = Raw()


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
    return None if raw is _UNSET else json_value(bytes(raw).decode("utf-8", "replace"))
