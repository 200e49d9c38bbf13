"""Template files: written templates are read back, and anything else is refused."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.experience.opening import why_not_shown
from journeyman.experience.template_files import decode, encode
from journeyman.records import (
    LateChange,
    Pattern,
    PatternId,
    SessionId,
    Step,
    Template,
)
from journeyman.records.errors import BadTemplate

STEPS = (
    Step(tool="book", arguments='{"seat": "12"}', result="Held."),
    Step(tool="book", arguments='{"seat": 12, "note": "für Zoë"}', result='{"ok": true}'),
)
INTENT = "Book a seat."
PATTERN = Pattern(
    intent=INTENT,
    steps=STEPS,
    source="hermes",
    times=3,
    session_count=2,
    at=1.5,
)
FULL = Template(
    name="Seats",
    version=4,
    origin="imported",
    task_type="research",
    tags=("air", "travel"),
    description="For seats.",
    addendum="Ask first.",
    source="hermes",
    created_at=1714521600.25,
    scanned=10,
    qualified=7,
    late_minus_early=LateChange(estimate=-0.1, low=-0.3, high=0.1, calls=80, method="by tool"),
    patterns=(PATTERN,),
)


def file(**changes: object) -> dict[str, Any]:
    return json.loads(encode(FULL)) | changes


def read(document: object) -> Template:
    return decode(json.dumps(document).encode()).template


def with_pattern(**changes: object) -> dict[str, Any]:
    whole = file()
    whole["patterns"][0] |= changes
    return whole


def with_step(number: int, **changes: object) -> dict[str, Any]:
    whole = file()
    whole["patterns"][0]["steps"][number] |= changes
    return whole


class TestOwnForm:
    def test_round_trip(self) -> None:
        # A written template is read back.
        decoded = decode(encode(FULL))
        assert decoded.template == FULL
        assert decoded.skipped == ()

        # No field is missing: each has a value other than its default here, unless it is not
        # stored in files.
        for record, left_out in (
            (FULL, {"origin", "used", "last_used_at"}),
            (PATTERN, {"id", "tokens", "sessions"}),
        ):
            for field in msgspec.structs.fields(record):
                if field.name not in left_out:
                    assert getattr(record, field.name) != field.default, field.name

        # Encoding is deterministic.
        assert encode(FULL) == encode(decode(encode(FULL)).template)

        # Files are readable by people.
        text = encode(FULL).decode()
        assert text.startswith('{\n  "format": "journeyman-template",\n  "format_version": 1,\n')
        assert text.endswith("}\n")
        assert "für Zoë" in text

        # The name can be overridden.
        assert decode(encode(FULL), name="Mine").template.name == "Mine"

        # A template without patterns.
        empty = Template(name="empty", origin="imported", addendum="Ask first.")
        assert decode(encode(empty)).template == empty

    def test_local_statistics_are_neither_written_nor_read(self) -> None:
        # Statistics of this library are not written.
        used = msgspec.structs.replace(
            FULL,
            origin="built",
            used=9,
            last_used_at=5.0,
            patterns=(
                msgspec.structs.replace(
                    PATTERN, tokens=77, id=PatternId("another"), sessions=(SessionId("s1"),)
                ),
            ),
        )
        assert encode(used) == encode(FULL)

        # Statistics in a file are not read.
        claims = file(used=99, last_used_at=1.0, origin="built")
        claims["patterns"][0] |= {"id": "forged", "tokens": 1, "sessions": ["s1"]}
        assert read(claims) == FULL


REFUSED: dict[str, tuple[bytes | object, str]] = {
    "empty": (b"", "it is not JSON"),
    "not UTF-8": (b'{"name": "\xff"}', "it is not JSON"),
    "too deep": (b"[" * 200_000, "it is not JSON"),
    "a list": ([file()], "it has no patterns or examples"),
    "something else": ({"hello": "world"}, "it has no patterns or examples"),
    "no version": (file(format_version=None), "format version None"),
    "newer version": (file(format_version=2), "Read it with a newer Journeyman"),
    "no name": (file(name=""), "Pass a name"),
    "invalid name": (file(name="../x"), "cannot be called '../x'"),
    "name is a number": (file(name=5), "The file is not a template"),
    "invalid tag": (file(tags=["a,b"]), "cannot be a tag"),
    "tags are a string": (file(tags="a"), "The file is not a template"),
    "infinite time": (file(created_at=10**400), "The file is not a template"),
    "a gain in words": (
        file(late_minus_early={"estimate": "better"}),
        "The file is not a template",
    ),
    "patterns are an object": (file(patterns={}), "The file is not a template"),
    "pattern is a number": (file(patterns=[5]), "The file is not a template"),
    "no intent": (file(patterns=[{"steps": [{"tool": "t"}]}]), "`intent`"),
    "arguments in a list": (with_step(1, arguments=[1]), "The file is not a template"),
}


@table(
    "unfit",
    [with_pattern(steps=[]), *(with_step(1, arguments=one) for one in ("", "{", "[1]", "NaN"))],
)
def test_patterns_that_no_host_accepts_are_read_and_not_shown(unfit: dict[str, Any]) -> None:
    (pattern,) = read(unfit).patterns
    assert why_not_shown(pattern)


def test_arguments_are_read_without_escapes() -> None:
    # Neither redaction nor the search for instructions would see through them.
    (pattern,) = read(with_step(1, arguments=r'{"note": "\u0049gnore", "note": "\u0050"}')).patterns
    assert pattern.steps[1].arguments == '{"note": "P"}'


@table("case", REFUSED)
def test_invalid_files_are_refused(case: str) -> None:
    content, clause = REFUSED[case]
    with pytest.raises(BadTemplate) as refused:
        decode(content if isinstance(content, bytes) else json.dumps(content).encode())
    assert clause in str(refused.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    *("format", "format_version", "name", "patterns", "examples", "steps", "tool"),
                    *("tool_name", "arguments", "success", "kind", "intent", "tags", "result"),
                )
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def read_or_none(data: bytes, **options: str) -> Template | None:
    """Return the template, or None if refused; any other exception is a bug."""
    try:
        return decode(data, **options).template
    except BadTemplate:
        return None


@given(values, st.sampled_from([{}, {"format": "journeyman-template", "format_version": 1}]))
def test_any_json_is_read_or_refused(value: object, header: dict[str, object]) -> None:
    whole = header | value if isinstance(value, dict) else value
    template = read_or_none(json.dumps(whole).encode(), name="any")
    assert template is None or decode(encode(template)).template == template


@given(st.integers(0, 2000), st.binary(max_size=3))
def test_damaged_file_is_read_or_refused(place: int, damage: bytes) -> None:
    whole = encode(FULL)
    template = read_or_none(whole[:place] + damage + whole[place + 1 :])
    assert template is None or decode(encode(template)).template == template
