"""Results in a Claude Code transcript: their text, and the flags beside them."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from journeyman.logs.values import as_text
from journeyman.records import Recorded

NOTHING = Raw()


class _Flags(Struct, rename="camel"):
    """The small flags in `toolUseResult`; the rest of it repeats the result. `code` is the status
    of a web page.
    """

    interrupted: bool | None = None
    success: bool | None = None
    status: str | None = None
    code: int | None = None
    exit_code: int | None = None
    truncated: bool | None = None
    user_modified: bool | None = None
    background_task_id: str | None = None
    return_code_interpretation: str | None = None
    duration_ms: float | None = None
    total_duration_ms: float | None = None


_DETAILS = (
    "truncated",
    "user_modified",
    "background_task_id",
    "return_code_interpretation",
    "code",
)

_decode_flags = msgspec.json.Decoder(_Flags, strict=False).decode
_decode_any = msgspec.json.Decoder().decode


def result_text(content: Raw) -> str:
    """What a tool gave back, as text."""
    return "" if content is NOTHING else as_text(_decode_any(text_of(content)))


def text_of(raw: Raw) -> str:
    """JSON that was left undecoded, as it stands in the line. What is skipped over while a line
    is decoded is not checked for broken characters, so they are replaced here.
    """
    return bytes(raw).decode("utf-8", "replace")


def recorded(result: Raw, *, is_error: bool | None) -> Recorded | None:
    """The flags on a result: those the model was shown, and those beside it."""
    flags = _flags(result)
    if is_error is None and flags.success is False:
        is_error = True
    details: dict[str, str | int | float | bool] = {}
    for name in _DETAILS:
        if value := getattr(flags, name):
            details[name] = value
    duration = flags.duration_ms if flags.duration_ms is not None else flags.total_duration_ms
    if duration is not None:
        details["duration_s"] = duration / 1000
    said = Recorded(
        is_error=is_error,
        exit_code=flags.exit_code,
        status=flags.status,
        interrupted=flags.interrupted or None,
        details=details,
    )
    return None if said == Recorded() else said


def _flags(result: Raw) -> _Flags:
    if bytes(memoryview(result)[:1]) != b"{":
        return _Flags()  # an error is recorded as text, and some results are lists
    try:
        return _decode_flags(result)
    except (msgspec.ValidationError, UnicodeDecodeError):
        pass
    # Another tool's result with a field of the same name: keep the fields that do fit.
    fitting: dict[str, Any] = {}
    for name, value in _decode_any(text_of(result)).items():
        try:
            msgspec.convert({name: value}, _Flags, strict=False)
        except msgspec.ValidationError:
            continue
        fitting[name] = value
    return msgspec.convert(fitting, _Flags, strict=False)
