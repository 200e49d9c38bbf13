"""Redaction keeps its promises for any text."""

import base64
import json

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.canaries import sample

from journeyman.redaction.families import load_families
from journeyman.redaction.instructions import find_suspicion
from journeyman.redaction.redactor import Redactor

_pieces = st.sampled_from(
    [
        *(sample(row) for row in load_families().family[::9]),
        *("password=", "password: ", '"token": "', "hunter2hunter2", "Authorization: Bearer "),
        *("bob@corp.example", "/home/alice/x", "alice", "C:\\Users\\bob\\", "+49 30 901820"),
        *("4111 1111 1111 1111", "123-45-6789", "-----BEGIN PRIVATE KEY-----\n", "MIIE" * 8),
        *("-----END PRIVATE KEY-----", "Cookie: a=b; c=d", "postgres://u:pw1@h/d", "<email:1>"),
        *(
            "--password ",
            "\\n",
            "\n",
            " ",
            '"',
            "'",
            "\\",
            "{",
            "}",
            ":",
            "=",
            "<",
            ">",
            ",",
            "[",
            "]",
        ),
        *("my password is ", base64.b64encode(b"password=hunter2hunter2").decode(), "%40", "@"),
    ]
)
texts = st.lists(st.one_of(_pieces, st.text(max_size=12)), max_size=12).map("".join)
names = st.sampled_from(["a", "password", "token", "text", "value", "name", "pin", "key", "auth"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.one_of(names, texts), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(texts)
def test_redaction_is_idempotent(text: str) -> None:
    redactor = Redactor()
    once = redactor.text(text)
    assert redactor.text(once) == once
    assert Redactor().text(once) == once


@example({"password": -10, "apify_api_" + "aB3dE6gH9k" * 4: []}, None, False)
@given(values, st.sampled_from([None, 2]), st.booleans())
def test_json_stays_json(value: object, indent: int | None, ascii_only: bool) -> None:
    arguments = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    redacted = Redactor().text(arguments)
    shape = json.loads(redacted)
    assert Redactor().text(redacted) == redacted
    if isinstance(value, dict):
        assert isinstance(shape, dict)
        assert len(shape) == len(value)


@given(st.text(alphabet=st.characters(exclude_categories=["L", "N"]), max_size=200))
def test_text_without_letters_or_digits_is_unchanged(text: str) -> None:
    assert Redactor().text(text) == text


CANARY = "ghp_" + "A1b2" * 9


@settings(deadline=None)  # each level of nesting in names doubles the text
@given(st.data(), st.integers(0, 6))
def test_secret_is_removed_from_any_nesting(data: st.DataObject, depth: int) -> None:
    value: object = data.draw(st.sampled_from([CANARY, f"use {CANARY}", f"a\n{CANARY}\nb"]))
    for _ in range(depth):
        wrap = data.draw(st.sampled_from(["list", "object", "text", "name"]))
        if wrap == "list":
            value = [1, value, None]
        elif wrap == "object":
            value = {data.draw(names): value, "n": 1}
        elif wrap == "name":
            value = {json.dumps(value): value}
        else:
            value = json.dumps(value)
    text = json.dumps(value)
    assert CANARY not in Redactor().text(text)
    assert CANARY not in Redactor().text(f"got {text} back")
    cut = text[: text.rindex(CANARY) + len(CANARY)]
    assert CANARY not in Redactor().text(cut)


@given(st.lists(st.one_of(texts, st.text(max_size=60)), max_size=4))
def test_any_texts_can_be_checked_for_suspicion(drawn: list[str]) -> None:
    found = find_suspicion(drawn)
    assert found is None or (found.rule and found.evidence.isprintable())
