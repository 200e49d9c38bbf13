"""Story 16: secrets are masked in everything that leaves the service."""

import copy
import json
from typing import Any

import pytest
from tests.tables import table

from journeyman.redaction.masking import mask_parameters, mask_text

TOKEN = "ghp_" + "aB3" * 12
KEY = (
    "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0B\n" * 3 + "-----END PRIVATE KEY-----"
)


@table(
    ("details", "secret"),
    [
        pytest.param({"password": "hunter2"}, "hunter2", id="password"),
        pytest.param({"password": "changed"}, "changed", id="password-that-is-a-word"),
        pytest.param({"password": "q"}, '"q"', id="short-password"),
        pytest.param({"db": {"password": {"value": "hunter2"}}}, "hunter2", id="nested"),
        pytest.param({"passwords": ["hunter2", "hunter3"]}, "hunter", id="in-a-list"),
        pytest.param({"token": "abc"}, "abc", id="token"),
        pytest.param({"pin": 4711}, "4711", id="number"),
        pytest.param({"api_key": 123456789}, "123456789", id="number-as-key"),
        pytest.param({"headers": {"Authorization": "Bearer abc"}}, "abc", id="header"),
        pytest.param(
            {"env": [{"name": "DB_PASSWORD", "value": "xyzzy"}]}, "xyzzy", id="name-and-value-pair"
        ),
        pytest.param({"text": f"use {TOKEN} there"}, TOKEN, id="token-in-text"),
        pytest.param({"text": KEY}, "MIIEvQIBADANBgkqhkiG9w0B", id="private-key"),
        pytest.param({"url": "https://ann:pa55w0rd@host/x"}, "pa55w0rd", id="in-url"),
        pytest.param({"cmd": "mysql --password=hunter2x"}, "hunter2x", id="in-a-command"),
        pytest.param({"body": '{"password": "s3cr3t!x"}'}, "s3cr3t!x", id="in-json-in-text"),
        pytest.param({"x": "cGFzc3dvcmQ9aHVudGVyMmh1bnRlcjI="}, "cGFzc3dvcmQ9", id="encoded"),
        pytest.param({TOKEN: 1}, TOKEN, id="in-key"),
        pytest.param({"a_note": "say hunter2", "password": "hunter2"}, "hunter2", id="twice"),
    ],
)
def test_secrets_are_masked(details: dict[str, Any], secret: str) -> None:
    before = copy.deepcopy(details)
    shown = json.dumps(mask_parameters(details))
    assert secret not in shown
    assert "[hidden: " in shown
    assert details == before


def test_what_is_hidden_says_how_long_it_is() -> None:
    assert mask_parameters({"password": "hunter2"}) == {"password": "[hidden: 7 characters]"}
    assert mask_parameters({"password": "h"}) == {"password": "[hidden: 1 character]"}
    url = mask_parameters({"url": "https://ann:pa55w0rd@host/x"})["url"]
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
    assert mask_parameters(details) == details


def test_secrets_from_the_details_are_masked_in_text() -> None:
    text = f"log in with hunter2 and {TOKEN}"
    assert mask_text(text) == "log in with hunter2 and [hidden: 40 characters]"
    shown = mask_text(text, {"password": "hunter2"})
    assert shown == "log in with [hidden: 7 characters] and [hidden: 40 characters]"


def test_deeply_nested_details_are_not_shown() -> None:
    deep: dict[str, Any] = {"password": "hunter2"}
    for _ in range(3000):
        deep = {"x": deep}
    shown: Any = mask_parameters(deep)
    while isinstance(shown, dict):
        shown = shown["x"]
    assert shown == "[hidden: nested too deeply]"
