"""Templates as files: written in one form, read in that form and in the shapes of older programs.

A file is not believed: ids are made again from the content, and what this library counts itself
(use, effect, tokens) is neither written nor read. What is read is still as the file has it. The
library redacts it and looks for instructions in it before anything is kept, which changes the
texts, so that it makes the ids once more.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from journeyman.records import (
    Gain,
    Pattern,
    PatternId,
    PatternKind,
    PatternType,
    SessionId,
    Step,
    Template,
)
from journeyman.records.errors import BadTemplate
from journeyman.templates.files.older_shapes import Draft, intent_for, is_older, read_older
from journeyman.templates.files.strict_json import BadJson, canonical, read_json
from journeyman.templates.likeness import pattern_id
from journeyman.templates.names import checked_name, checked_tag

FORMAT = "journeyman-template"
FORMAT_VERSION = 1
LARGEST_FILE = 20 * 1024 * 1024

_NOT_IN_FILES = ("origin", "used", "last_used_at", "effect")
_NOT_IN_PATTERNS = ("id", "tokens")
_NEXT = "Give a file that `journeyman templates export` wrote."

Count = Annotated[int, Meta(ge=0, lt=2**53)]
Number = Annotated[int, Meta(ge=1, lt=2**31)]


class Decoded(Struct, frozen=True, kw_only=True):
    """The template in a file, and a sentence for each entry that was left out."""

    template: Template
    skipped: tuple[str, ...] = ()


class _StepForm(Struct, kw_only=True):
    tool: Annotated[str, Meta(min_length=1)]
    arguments: dict[str, Any] | str = {}
    result: str = ""
    worked: bool = True


class _PatternForm(Struct, kw_only=True):
    kind: PatternKind
    intent: str
    steps: Annotated[tuple[_StepForm, ...], Meta(min_length=1)]
    task_type: PatternType = "mixed"
    source: str = ""
    times: Number = 1
    session_count: Number = 1
    sessions: tuple[SessionId, ...] = ()
    models: tuple[str, ...] = ()
    first_seen: float | None = None
    last_seen: float | None = None
    quarantined: str = ""


class _TemplateForm(Struct, kw_only=True):
    name: str = ""
    version: Number = 1
    task_type: PatternType = "mixed"
    tags: tuple[str, ...] = ()
    description: str = ""
    addendum: str = ""
    source: str = ""
    created_at: float | None = None
    scanned: Count = 0
    qualified: Count = 0
    gain: Gain | None = None
    patterns: tuple[_PatternForm, ...] = ()


def encode(template: Template) -> bytes:
    """A template as a file: the same bytes for the same template."""
    form = _without(msgspec.to_builtins(template), _NOT_IN_FILES)
    form["patterns"] = [_pattern_form(pattern) for pattern in template.patterns]
    whole = {"format": FORMAT, "format_version": FORMAT_VERSION, **form}
    # The standard library's, because arguments may hold numbers of any length.
    return json.dumps(whole, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"


def decode(data: bytes, *, name: str | None = None) -> Decoded:
    """The template in a file, under the name it has or under another. Results are as long as the
    file has them: who redacts cuts them afterwards, because half a secret is not recognised.
    Raises BadTemplate when the file is none, and has then read nothing.
    """
    document = _document(data)
    if document.get("format") == FORMAT:
        draft = _read_own(document)
    elif is_older(document):
        draft = read_older(document)
    else:
        raise _refused("it has neither patterns nor examples")
    name = draft.template.name if name is None else name
    if not name:
        raise BadTemplate(
            "The file does not say what the template is called. Give it a name (--name)."
        )
    patterns, repeated = _distinct(draft.patterns)
    return Decoded(
        template=msgspec.structs.replace(
            draft.template, name=checked_name(name), origin="imported", patterns=patterns
        ),
        skipped=(*draft.skipped, *repeated),
    )


def _refused(clause: str) -> BadTemplate:
    return BadTemplate(f"The file is no template: {clause}. {_NEXT}")


def _document(data: bytes) -> dict[str, Any]:
    if len(data) > LARGEST_FILE:
        raise _refused(f"it has {len(data):,} bytes, and at most {LARGEST_FILE:,} are read")
    try:
        document = read_json(data)
    except BadJson as error:
        raise _refused(str(error)) from error
    if not isinstance(document, dict):
        raise _refused("it holds something else than one object")
    return document


def _read_own(document: Mapping[str, Any]) -> Draft:
    version = document.get("format_version")
    if type(version) is not int or version < 1:
        raise _refused("it does not say which version of the form it has")
    if version > FORMAT_VERSION:
        raise BadTemplate(
            f"The template has version {version} of the form, and this program reads up to "
            f"{FORMAT_VERSION}. Read it with a newer Journeyman."
        )
    try:
        form = msgspec.convert(document, _TemplateForm)
    except (msgspec.ValidationError, OverflowError) as error:
        raise _refused(f"it has not the expected shape ({error})") from error
    tags = tuple(dict.fromkeys(checked_tag(tag) for tag in form.tags))
    template = Template(**{**msgspec.structs.asdict(form), "tags": tags, "patterns": ()})
    patterns = {f"pattern {number}": one for number, one in enumerate(form.patterns, start=1)}
    return Draft(template, {label: _pattern(one, label) for label, one in patterns.items()}, [])


def _pattern(form: _PatternForm, label: str) -> Pattern:
    failed = [index for index, step in enumerate(form.steps) if not step.worked]
    if failed != ([0] if form.kind == "recovery" else []) or failed == [len(form.steps) - 1]:
        raise _refused(
            f"{label} teaches a call that did not work; only the first of a recovery may fail"
        )
    steps = tuple(_step(step, label) for step in form.steps)
    intent = intent_for(form.intent, steps[-1].tool)
    fields = {**msgspec.structs.asdict(form), "intent": intent, "steps": steps}
    return Pattern(id=PatternId(""), **fields)


def _step(form: _StepForm, label: str) -> Step:
    arguments = form.arguments
    if isinstance(arguments, str):
        try:
            value = read_json(arguments)
        except BadJson:
            value = None
        # What failed may have failed because its arguments were no object.
        if form.worked and not isinstance(value, dict):
            raise _refused(f"the arguments of {label} are not a JSON object")
        arguments = canonical(value) if isinstance(value, dict) else arguments
    else:
        arguments = canonical(arguments)
    return Step(tool=form.tool, arguments=arguments, result=form.result, worked=form.worked)


def _distinct(patterns: Mapping[str, Pattern]) -> tuple[tuple[Pattern, ...], list[str]]:
    """Equal work for an equal request once, counted as often as it was seen."""
    found: dict[tuple[PatternId, str], tuple[str, Pattern]] = {}
    repeated: list[str] = []
    for label, given in patterns.items():
        made = pattern_id(given.kind, given.intent, given.steps)
        pattern = msgspec.structs.replace(given, id=made)
        key = made, pattern.intent
        if key not in found:
            found[key] = label, pattern
            continue
        place, first = found[key]
        times = first.times + pattern.times
        found[key] = place, msgspec.structs.replace(first, times=times)
        repeated.append(f"{label}: it is the same work as {place}, and counted there")
    return tuple(pattern for _, pattern in found.values()), repeated


def _pattern_form(pattern: Pattern) -> dict[str, Any]:
    form = _without(msgspec.to_builtins(pattern), _NOT_IN_PATTERNS)
    for step in form["steps"]:
        step["arguments"] = _readable(step.get("arguments", "{}"))
    return form


def _readable(arguments: str) -> Any:
    """Arguments as an object, which a person can read; the text where they are none."""
    try:
        value = read_json(arguments)
    except BadJson:
        return arguments
    return value if isinstance(value, dict) else arguments


def _without(form: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in form.items() if key not in keys}
