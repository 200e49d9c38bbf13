"""Bodies are decoded strictly, and no invalid one breaks the service."""

import json
import random
from typing import Any

import pytest
from tests.confirm_server import ConfirmServer, bearer
from tests.tables import table

from journeyman.confirm.schemas import Decision, NewWhitelistEntry
from journeyman.confirm.server.errors import ApiError
from journeyman.confirm.server.request_context import LARGEST_INTEGER, decode_body

ASKED: dict[str, Any] = {"action": "send_mail", "description": "Tell Bob."}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "action_is_a_number": ({"action": 5}, "action"),
    "action_is_empty": ({"action": ""}, "action"),
    "action_is_long": ({"action": "x" * 201}, "action"),
    "description_is_a_list": ({"description": []}, "description"),
    "description_is_long": ({"description": "x" * 20_001}, "description"),
    "details_is_a_list": ({"details": []}, "details"),
    "details_is_text": ({"details": "{}"}, "details"),
    "session_key_is_long": ({"session_key": "x" * 201}, "session_key"),
    "requester_is_long": ({"requester": "x" * 201}, "requester"),
    "timeout_is_text": ({"timeout_seconds": "5 min"}, "timeout_seconds"),
    "timeout_is_true": ({"timeout_seconds": True}, "timeout_seconds"),
    "key_is_long": ({"idempotency_key": "x" * 201}, "idempotency_key"),
}


@table("case", WRONG)
def test_invalid_field_is_named(server: ConfirmServer, case: str) -> None:
    given, field = WRONG[case]
    answer = server.post("/confirm", server.agent(), {**ASKED, **given})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["field"]) == (400, "bad_request", field)
    assert field in error["message"]


def test_details_that_json_cannot_express_exactly_are_refused(server: ConfirmServer) -> None:
    for value in (LARGEST_INTEGER + 2, -(10**40), nested(40)):
        answer = server.post("/confirm", server.agent(), {**ASKED, "details": {"a": [value]}})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")


def test_timeouts_outside_the_limits_are_adjusted_with_a_warning(server: ConfirmServer) -> None:
    for asked, given in ((0, 30), (29, 30), (-5, 30), (3_601, 3_600), (10**9, 3_600)):
        card = server.submit(timeout_seconds=asked, details={"asked": asked})
        assert given - 5 < card["expires_in_s"] <= given
        (warning,) = card["warnings"]
        assert warning == (
            f"timeout_seconds is {asked}, and must be from 30 to 3,600: people have {given:,} "
            "seconds to decide."
        )
    for asked in (30, 3_600):
        assert server.submit(timeout_seconds=asked, details={"asked": asked})["warnings"] == []


def test_null_in_an_optional_field_means_left_out(server: ConfirmServer) -> None:
    optional = ("details", "requester", "session_key", "timeout_seconds", "idempotency_key")
    card = server.submit(**dict.fromkeys(optional))
    assert (card["details"], card["claimed"], card["session_key"]) == ({}, "", "")
    assert 290 < card["expires_in_s"] <= 300
    # Null inside the parameters is a value.
    assert server.submit(details={"a": None, "b": [None]})["details"] == {"a": None, "b": [None]}
    key = server.approver()
    body = {"reason": None, "digest": None}
    assert server.post(f"/confirm/{card['id']}/deny", key, body).json()["status"] == "denied"


@table("missing", ["action", "description"])
@table("left", [None, "   "], ids=["missing", "blank"])
def test_action_and_description_are_required(
    server: ConfirmServer, missing: str, left: str | None
) -> None:
    body = {name: value for name, value in ASKED.items() if name != missing}
    if left is not None:
        body[missing] = left
    answer = server.post("/confirm", server.agent(), body)
    assert answer.status_code == 400
    assert missing in answer.json()["error"]["message"]


@table(
    "details",
    [
        {"a": LARGEST_INTEGER, "b": -LARGEST_INTEGER, "c": 1.5e300, "d": None, "e": True},
        {"a": nested(30)},
        {"": "", "\u202e": "\u0000", "日本": "💩"},
    ],
    ids=["numbers", "nested", "texts"],
)
def test_details_with_exact_json_are_accepted(
    server: ConfirmServer, details: dict[str, Any]
) -> None:
    assert server.submit(details=details)["details"] == details


BROKEN: tuple[bytes, ...] = (
    *(b"", b"{", b"}", b"null", b"[]", b"1", b'"x"', b"true", b"nul", b"{}", b"{}{}", b"\xff\xfe"),
    *(b"\x00", b'{"action": NaN}', b"[" * 5_000, b'{"a":' * 5_000, b'{"details": 1e999}', b"\xed"),
    *(
        b'{"action": "\\ud800", "description": "x"}',
        b'{"action": "\xed\xa0\x80"}',
        b"\xef\xbb\xbf{",
    ),
    *(b"{'action': 'x'}", b'{"action": "x" "description": "y"}', b'{"action": "x",}'),
    *(b"action=x&description=y", b"<confirm/>", b'{"details": {"a": 1' + b"0" * 5_000 + b"}}"),
)


def malformed(count: int) -> list[bytes]:
    """Invalid bodies: known cases, valid ones that were truncated or damaged, and noise."""
    chance = random.Random(6)
    good = json.dumps(
        {**ASKED, "details": {"to": ["bob", 1, None]}, "timeout_seconds": 60}
    ).encode()
    found = list(BROKEN)
    while len(found) < count:
        way = chance.randrange(4)
        if way == 0:
            found.append(good[: chance.randrange(len(good))])
        elif way == 1:
            at = chance.randrange(len(good))
            found.append(good[:at] + bytes([chance.randrange(256)]) * 3 + good[at + 2 :])
        elif way == 2:
            found.append(chance.randbytes(chance.randrange(200)))
        else:
            kind = chance.choice((None, 5, [], {}, 1.5, False))
            found.append(json.dumps({**ASKED, chance.choice(list(ASKED)): kind}).encode())
    return found


@pytest.mark.parametrize("count", [200, pytest.param(5_000, marks=pytest.mark.soak)])
def test_malformed_bodies_are_refused(server: ConfirmServer, count: int) -> None:
    card = server.submit(details={"malformed": 1})
    agent, approver = bearer(server.agent()), bearer(server.approver())
    ways = [
        ("/confirm", agent),
        (f"/confirm/{card['id']}/redeem", agent),
        (f"/confirm/{card['id']}/approve", approver),
    ]
    statuses = set()
    for number, body in enumerate(malformed(count)):
        path, headers = ways[number % len(ways)]
        headers = {**headers, "Content-Type": "application/json"}
        answer = server.send("POST", path, content=body, headers=headers)
        if answer.status_code >= 400:
            assert answer.json()["error"]["message"]
        statuses.add(answer.status_code)
    assert statuses in ({400}, {202, 400})  # a damaged body may still be valid
    assert server.card(card["id"]).status == "pending"
    assert server.get("/health").status_code == 200


@table(
    ("kind", "body", "field"),
    [
        (Decision, b'{"digest": "x", "typed": 5}', "typed"),
        (NewWhitelistEntry, b'{"action": "x", "expires_in_seconds": 0}', "expires_in_seconds"),
        (NewWhitelistEntry, b'{"action": "x", "constraints": {"a": 1}}', "constraints[...]"),
    ],
)
def test_other_bodies_are_decoded_strictly(kind: type, body: bytes, field: str) -> None:
    with pytest.raises(ApiError) as refused:
        decode_body(body, kind)
    assert refused.value.details.get("field", "") == field
