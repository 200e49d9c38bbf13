"""Story 16, secrets in cards and logs: what leaves the house has none of them."""

import copy
import json
from typing import Any

import pytest
from tests.tables import table

from journeyman.confirm.masking import masked, masked_text

TOKEN = "ghp_" + "aB3" * 12
KEY = (
    "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0B\n" * 3 + "-----END PRIVATE KEY-----"
)


@table(
    ("details", "secret"),
    [
        pytest.param({"password": "hunter2"}, "hunter2", id="password"),
        pytest.param({"password": "changed"}, "changed", id="a-password-that-is-a-word"),
        pytest.param({"password": "q"}, '"q"', id="a-short-password"),
        pytest.param({"db": {"password": {"value": "hunter2"}}}, "hunter2", id="nested"),
        pytest.param({"passwords": ["hunter2", "hunter3"]}, "hunter", id="in-a-list"),
        pytest.param({"token": "abc"}, "abc", id="token"),
        pytest.param({"pin": 4711}, "4711", id="a-number"),
        pytest.param({"api_key": 123456789}, "123456789", id="a-number-as-a-key"),
        pytest.param({"headers": {"Authorization": "Bearer abc"}}, "abc", id="header"),
        pytest.param({"env": [{"name": "DB_PASSWORD", "value": "xyzzy"}]}, "xyzzy", id="by-a-name"),
        pytest.param({"text": f"use {TOKEN} there"}, TOKEN, id="a-token-in-a-text"),
        pytest.param({"text": KEY}, "MIIEvQIBADANBgkqhkiG9w0B", id="a-private-key"),
        pytest.param({"url": "https://ann:pa55w0rd@host/x"}, "pa55w0rd", id="in-an-address"),
        pytest.param({"cmd": "mysql --password=hunter2x"}, "hunter2x", id="in-a-command"),
        pytest.param({"body": '{"password": "s3cr3t!x"}'}, "s3cr3t!x", id="in-json-in-a-text"),
        pytest.param({"x": "cGFzc3dvcmQ9aHVudGVyMmh1bnRlcjI="}, "cGFzc3dvcmQ9", id="encoded"),
        pytest.param({TOKEN: 1}, TOKEN, id="in-a-name"),
        pytest.param({"a_note": "say hunter2", "password": "hunter2"}, "hunter2", id="twice"),
    ],
)
def test_no_secret_is_left(details: dict[str, Any], secret: str) -> None:
    before = copy.deepcopy(details)
    shown = json.dumps(masked(details))
    assert secret not in shown
    assert "[hidden: " in shown
    assert details == before


def test_what_is_hidden_says_how_long_it_is() -> None:
    assert masked({"password": "hunter2"}) == {"password": "[hidden: 7 characters]"}
    assert masked({"password": "h"}) == {"password": "[hidden: 1 character]"}
    url = masked({"url": "https://ann:pa55w0rd@host/x"})["url"]
    assert url == "https://ann:[hidden: 8 characters]@host/x"


@table(
    "details",
    [
        {"to": "bob@example.com", "cc": ["ann@example.com"], "phone": "+49 30 1234567"},
        {"path": "/home/alice/run.sh", "amount": 100, "iban": "DE89370400440532013000"},
        {"max_tokens": 4096, "token": "$TOKEN", "password": "", "secret": None, "auth": True},
        {"script": "rm -rf /tmp/x && echo done", "nested": {"list": [1, 2.5, None, False, "x"]}},
    ],
    ids=["people", "places", "no-secrets", "commands"],
)
def test_what_is_decided_on_stays(details: dict[str, Any]) -> None:
    assert masked(details) == details


def test_a_text_is_masked_with_what_the_parameters_give_away() -> None:
    text = f"log in with hunter2 and {TOKEN}"
    assert masked_text(text) == "log in with hunter2 and [hidden: 40 characters]"
    shown = masked_text(text, {"password": "hunter2"})
    assert shown == "log in with [hidden: 7 characters] and [hidden: 40 characters]"


def test_a_word_behind_a_loose_name_is_hidden_there_only() -> None:
    shown = masked({"token": "production", "text": "to production"})
    assert shown == {"token": "[hidden: 10 characters]", "text": "to production"}


def test_what_is_nested_too_deeply_is_not_shown() -> None:
    deep: dict[str, Any] = {"password": "hunter2"}
    for _ in range(3000):
        deep = {"x": deep}
    shown: Any = masked(deep)
    while isinstance(shown, dict):
        shown = shown["x"]
    assert shown == "[hidden: nested too deeply]"
