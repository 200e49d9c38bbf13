"""Records without secrets: reports, and exports that are made to be passed on."""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from journeyman.records import JudgedCall, JudgedSession
from journeyman.redaction.redactor import Redactor

_Record = TypeVar("_Record")
_READ_OF_RESULT = 2_048


def redacted_record(record: _Record) -> _Record:
    """A record, or several, with every text in it redacted; values of a closed set stay. A
    placeholder stands for the same value in the whole of it.
    """
    redactor = Redactor()
    shown: _Record = record
    for _ in range(2):  # a name that a later text gives away may stand bare in an earlier one
        shown = _walked(shown, cache(redactor.text))
    return shown


def redacted_sessions(sessions: Sequence[JudgedSession]) -> list[JudgedSession]:
    """Judged sessions for a report: each distinct text is redacted once, whatever the number of
    calls.
    """
    redactor = Redactor()
    texts = dict.fromkeys(text for session in sessions for text in _texts(session))
    for text in texts:
        redactor.text(text)
    clean = {text: redactor.text(text) for text in texts}
    if all(text == shown for text, shown in clean.items()):
        return list(sessions)
    return [_session(session, clean) for session in sessions]


def redacted_evidence(evidence: str, result: str) -> str:
    """The evidence of a verdict. It is on one line: what tells a secret in it may be on another
    line of the result that it was taken from.
    """
    redactor = Redactor()
    redactor.text(result[:_READ_OF_RESULT])
    redactor.text(result[_READ_OF_RESULT:][-_READ_OF_RESULT:])
    return redactor.text(evidence)


def _texts(session: JudgedSession) -> Iterable[str]:
    yield from (session.id, session.source, session.model, session.project, *session.tags)
    for call in session.calls:
        yield from (call.tool, call.model, call.verdict.evidence)


def _session(session: JudgedSession, clean: dict[str, str]) -> JudgedSession:
    return msgspec.structs.replace(
        session,
        id=clean[session.id],
        source=clean[session.source],
        model=clean[session.model],
        project=clean[session.project],
        tags=tuple(clean[tag] for tag in session.tags),
        calls=tuple(_call(call, clean) for call in session.calls),
    )


def _call(call: JudgedCall, clean: dict[str, str]) -> JudgedCall:
    evidence = clean[call.verdict.evidence]
    return msgspec.structs.replace(
        call,
        tool=clean[call.tool],
        model=clean[call.model],
        verdict=msgspec.structs.replace(call.verdict, evidence=evidence),
    )


def _walked(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in _open_fields(type(value))}
        shown = {name: _walked(one, clean) for name, one in fields.items()}
        return msgspec.structs.replace(value, **shown) if shown != fields else value
    if isinstance(value, dict):
        # Which of its values are secret, the names beside them tell.
        return json.loads(clean(json.dumps(value, ensure_ascii=False)))
    if isinstance(value, list | tuple):
        return type(value)([_walked(one, clean) for one in value])
    return value


@cache
def _open_fields(record: type[Struct]) -> tuple[str, ...]:
    """The fields of a record but those with values of a closed set."""
    hints = get_type_hints(record)
    return tuple(name for name in record.__struct_fields__ if not _is_closed(hints[name]))


def _is_closed(hint: Any) -> bool:
    parts = [part for part in get_args(hint) if part is not type(None)]
    return get_origin(hint) is Literal or (len(parts) == 1 and get_origin(parts[0]) is Literal)
