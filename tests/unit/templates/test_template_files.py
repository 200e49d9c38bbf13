"""Templates as files: what was written is read back, and nothing else is believed."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.records import (
    Effect,
    Gain,
    Pattern,
    PatternId,
    SessionId,
    Step,
    Template,
)
from journeyman.records.errors import BadTemplate
from journeyman.templates import template_files
from journeyman.templates.strict_json import canonical
from journeyman.templates.template_files import decode, encode

STEPS = (
    Step(tool="book", arguments='{"seat": "12"}', result="Error: seat is a number", worked=False),
    Step(tool="book", arguments='{"seat": 12, "note": "für Zoë"}', result='{"ok": true}'),
)
INTENT = "Book a seat."
RECOVERY = Pattern(
    id=PatternId(""),
    kind="recovery",
    intent=INTENT,
    steps=STEPS,
    task_type="research",
    source="hermes",
    times=3,
    session_count=2,
    sessions=(SessionId("s1"), SessionId("s2")),
    models=("small", "large"),
    first_seen=1.5,
    last_seen=2.5,
    quarantined="instructs.reader",
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
    gain=Gain(estimate=0.1, low=-0.1, high=0.3, calls=80, method="by tool"),
    patterns=(RECOVERY,),
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
        # What was written is read back.
        decoded = decode(encode(FULL))
        assert decoded.template == FULL
        assert decoded.skipped == ()

        # No field is forgotten. Every field has another value here than by default, or is not meant
        # to be in a file.
        for record, left_out in (
            (FULL, {"origin", "used", "last_used_at", "effect"}),
            (RECOVERY, {"id", "tokens"}),
        ):
            for field in msgspec.structs.fields(record):
                if field.name not in left_out:
                    assert getattr(record, field.name) != field.default, field.name

        # The same template gives the same bytes.
        assert encode(FULL) == encode(decode(encode(FULL)).template)

        # A file is for people too.
        text = encode(FULL).decode()
        assert text.startswith('{\n  "format": "journeyman-template",\n  "format_version": 1,\n')
        assert text.endswith("}\n")
        assert '"note": "für Zoë"' in text

        # Another name.
        assert decode(encode(FULL), name="Mine").template.name == "Mine"

        # A template without patterns.
        empty = Template(name="empty", origin="imported", addendum="Ask first.")
        assert decode(encode(empty)).template == empty

    def test_counts_stay_here(self) -> None:
        # What this library counts is not written.
        used = msgspec.structs.replace(
            FULL,
            origin="built",
            used=9,
            last_used_at=5.0,
            effect=Effect(tried=3, gained=1.0),
            patterns=(msgspec.structs.replace(RECOVERY, tokens=77, id=PatternId("another")),),
        )
        assert encode(used) == encode(FULL)

        # What this library counts is not read.
        claims = file(used=99, effect={"tried": 9, "gained": 9.0}, last_used_at=1.0, origin="built")
        claims["patterns"][0] |= {"id": "forged", "tokens": 1}
        assert read(claims) == FULL

    def test_odd_values(self) -> None:
        # Arguments may be an object or its text.
        assert read(with_step(1, arguments='{"seat":12,"note":"f\\u00fcr Zo\\u00eb"}')) == FULL

        # What failed may have had any arguments.
        odd = (Step(tool="book", arguments='{"seat": ', result="invalid", worked=False), STEPS[1])
        changed = msgspec.structs.replace(RECOVERY, steps=odd)
        template = decode(encode(msgspec.structs.replace(FULL, patterns=(changed,)))).template
        assert template.patterns[0].steps == odd

        # Numbers of any length.
        steps = (Step(tool="t", arguments='{"n": 123456789012345678901234567890}'),)
        pattern = Pattern(id=PatternId(""), kind="final", intent="Count.", steps=steps)
        written = encode(Template(name="n", patterns=(pattern,)))
        assert decode(written).template.patterns[0].steps == steps

        # Half characters are replaced in files.
        written = encode(Template(name="n", description="half \ud800"))
        assert decode(written).template.description == "half ?"

        # Long results are left whole for whoever redacts them.
        long = "x" * 2000
        assert read(with_step(1, result=long)).patterns[0].steps[1].result == long


REFUSED: dict[str, tuple[bytes | object, str]] = {
    "empty": (b"", "it is not JSON"),
    "not UTF-8": (b'{"name": "\xff"}', "it is not JSON"),
    "too deep": (b"[" * 200_000, "it is not JSON"),
    "too large": (b" " * (template_files.LARGEST_FILE + 1), "20,971,521 bytes"),
    "a list": ([file()], "it is no object with patterns or examples"),
    "something else": ({"hello": "world"}, "it is no object with patterns or examples"),
    "no version": (file(format_version=None), "version None of the form"),
    "a later version": (file(format_version=2), "Read it with a newer Journeyman"),
    "no name": (file(name=""), "Give it a name"),
    "a bad name": (file(name="../x"), "cannot be called '../x'"),
    "a name that is none": (file(name=5), "not the expected shape"),
    "a bad tag": (file(tags=["a,b"]), "cannot be a tag"),
    "tags that are none": (file(tags="a"), "not the expected shape"),
    "template version 0": (file(version=0), "not the expected shape"),
    "an endless time": (file(created_at=10**400), "not the expected shape"),
    "patterns that are none": (file(patterns={}), "not the expected shape"),
    "a pattern that is none": (file(patterns=[5]), "not the expected shape"),
    "no kind": (file(patterns=[{"intent": "x", "steps": [{"tool": "t"}]}]), "`kind`"),
    "an unknown kind": (with_pattern(kind="guess"), "not the expected shape"),
    "no intent": (file(patterns=[{"kind": "final", "steps": [{"tool": "t"}]}]), "`intent`"),
    "no steps": (with_pattern(steps=[]), "not the expected shape"),
    "never seen": (with_pattern(times=0), "not the expected shape"),
    "no tool": (with_step(1, tool=""), "not the expected shape"),
    "arguments in a list": (with_step(1, arguments=[1]), "not the expected shape"),
    "arguments that are none": (with_step(1, arguments="{"), "arguments of pattern 1"),
    "a failure at the end": (with_step(1, worked=False), "pattern 1 teaches a call that did not"),
    "a failure in a first try": (with_pattern(kind="first_try"), "pattern 1 teaches a call"),
    "a recovery from nothing": (with_step(0, worked=True), "pattern 1 teaches a call"),
    "only a failure": (
        with_pattern(steps=[{"tool": "t", "worked": False}]),
        "pattern 1 teaches a call",
    ),
}


@table("case", REFUSED)
def test_what_is_no_template_is_refused(case: str) -> None:
    given, clause = REFUSED[case]
    with pytest.raises(BadTemplate) as refused:
        decode(given if isinstance(given, bytes) else json.dumps(given).encode())
    assert clause in str(refused.value)


def test_arguments_have_one_form() -> None:
    assert canonical({"b": 1, "a": "é"}) == '{"b": 1, "a": "é"}'


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


def read_or_refused(data: bytes, **options: str) -> Template | None:
    """Anything else than a template or a refusal is an error of the program."""
    try:
        return decode(data, **options).template
    except BadTemplate:
        return None


@given(values, st.sampled_from([{}, {"format": "journeyman-template", "format_version": 1}]))
def test_a_file_is_a_template_or_is_refused(value: object, header: dict[str, object]) -> None:
    whole = header | value if isinstance(value, dict) else value
    template = read_or_refused(json.dumps(whole).encode(), name="any")
    assert template is None or decode(encode(template)).template == template


@given(st.integers(0, 2000), st.binary(max_size=3))
def test_a_damaged_file_is_a_template_or_is_refused(place: int, damage: bytes) -> None:
    whole = encode(FULL)
    template = read_or_refused(whole[:place] + damage + whole[place + 1 :])
    assert template is None or decode(encode(template)).template == template
