"""Digests bind a decision to the whole request and to the content of the files that it names."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from tests.confirm_core import a_card
from tests.tables import table

from journeyman.confirm.digest import (
    MAX_BYTES,
    canonical,
    digest_of,
    digest_of_json,
    file_digests,
    fingerprint_of,
    same_json,
)
from journeyman.records.errors import WrongInput

ASKED: dict[str, Any] = {
    "action": "send_email",
    "description": "a mail to Bob",
    "details": {"to": "bob@example.com", "cc": ["a", "b"]},
    "requester": "mailer",
    "session_key": "s1",
    "context": {},
}
OTHERS = {
    "action": "send_mail",
    "description": "a mail to Bo",
    "details": {"to": "bob@example.com", "cc": ["b", "a"]},
    "requester": "mailer2",
    "session_key": "",
    "context": {"files": {}},
}


def bound(**facts: Any) -> str:
    card = a_card(**{**ASKED, **facts})
    return digest_of(card, card.details)


def test_digest_is_sha256_of_the_canonical_json() -> None:
    expected = (
        '{"action":"send_email","context":{},"description":"a mail to Bob",'
        '"details":{"cc":["a","b"],"to":"bob@example.com"},"nonce":"n","requester":"mailer",'
        '"session_key":"s1","type":"journeyman.confirmation.v1"}'
    )
    digest = "sha256:" + hashlib.sha256(expected.encode()).hexdigest()
    assert bound() == digest


@table("field", sorted(OTHERS))
def test_every_field_is_bound(field: str) -> None:
    changed = {field: OTHERS[field]}
    assert bound(**changed) != bound()
    assert fingerprint_of(a_card(**{**ASKED, **changed})) != fingerprint_of(a_card(**ASKED))


def test_equal_requests_share_a_fingerprint_but_not_a_digest() -> None:
    assert bound() != bound(nonce="m")
    assert digest_of_json({}, "one") != digest_of_json({}, "other")
    again = {**ASKED, "details": dict(reversed(ASKED["details"].items()))}
    assert fingerprint_of(a_card(**again)) == fingerprint_of(a_card(**ASKED))


@table(
    "value",
    [
        pytest.param(float("nan"), id="nan"),
        pytest.param(float("inf"), id="infinity"),
        pytest.param(2**53, id="too-large"),
        pytest.param(10**5000, id="much-too-large"),
        pytest.param("\ud800", id="lone-surrogate"),
        pytest.param({"\ud800": 1}, id="lone-surrogate-in-a-key"),
        pytest.param({1: 2}, id="number-as-key"),
        pytest.param(b"bytes", id="bytes"),
    ],
)
def test_values_without_exact_json_have_no_digest(value: object) -> None:
    with pytest.raises(WrongInput, match="exact JSON"):
        bound(details={"x": value})
    assert not same_json(value, value)


def test_deeply_nested_values_have_no_digest() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(WrongInput, match="nested too deeply"):
        canonical(deep)


@table(
    ("one", "other", "same"),
    [
        pytest.param(1, 1.0, True, id="numbers"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, True, id="order-of-keys"),
        pytest.param(1, True, False, id="true-is-not-1"),
        pytest.param(0, False, False, id="false-is-not-0"),
        pytest.param("1", 1, False, id="text-is-not-a-number"),
        pytest.param(None, "", False, id="null-is-not-empty"),
        pytest.param([1, 2], [2, 1], False, id="order-of-lists"),
        pytest.param([True], [1], False, id="inside-a-list"),
        pytest.param("e\u0301", "\u00e9", False, id="unicode-is-not-normalised"),
    ],
)
def test_json_equality(one: object, other: object, same: bool) -> None:
    assert same_json(one, other) is same


def test_files_are_bound_by_their_content(tmp_path: Path) -> None:
    script, data = tmp_path / "run.sh", tmp_path / "data.csv"
    script.write_bytes(b"echo 1\n")
    data.write_bytes(b"x" * 3_000_000)
    details = {"script": str(script), "inputs": [str(data), str(script)], "other": "/nowhere"}
    before = file_digests(details, ("script", "inputs", "absent"))
    assert before == {
        str(script): "sha256:" + hashlib.sha256(b"echo 1\n").hexdigest(),
        str(data): "sha256:" + hashlib.sha256(b"x" * 3_000_000).hexdigest(),
    }
    script.write_bytes(b"echo 2\n")
    after = file_digests(details, ("script", "inputs"))
    assert after[str(script)] != before[str(script)]
    assert after[str(data)] == before[str(data)]


@table(
    ("path", "problem"),
    [
        pytest.param("run.sh", "not an absolute path", id="relative"),
        pytest.param("/nowhere/at/all", "No such file", id="missing"),
        pytest.param("/dev/null", "not a regular file", id="device"),
        pytest.param("/", "Is a directory", id="folder"),
        pytest.param("/a\0b", "null byte", id="zero-byte"),
        pytest.param(7, "not an absolute path", id="number"),
        pytest.param("", "not an absolute path", id="empty"),
        pytest.param([["/etc/hosts"]], "parameter", id="list-in-a-list"),
    ],
)
def test_unreadable_files_are_refused_by_parameter_name(path: object, problem: str) -> None:
    with pytest.raises(WrongInput, match=problem) as caught:
        file_digests({"script": path}, ("script",))
    assert "'script'" in str(caught.value)


def test_pipes_and_oversized_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WrongInput, match="not a regular file"):
        file_digests({"script": str(tmp_path / "pipe")}, ("script",))
    file = tmp_path / "large"
    file.touch()
    os.truncate(file, MAX_BYTES)
    assert file_digests({"f": str(file)}, ("f",))
    os.truncate(file, MAX_BYTES + 1)
    with pytest.raises(WrongInput, match="up to 64 MB"):
        file_digests({"f": str(file)}, ("f",))
