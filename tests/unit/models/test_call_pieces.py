"""Tool calls from the pieces in which servers send them."""

from typing import Any

import pytest
from tests.tables import table

from journeyman.models.call_pieces import CallPieces
from journeyman.records import ToolCall


def piece(
    index: object = None, call_id: object = None, name: object = None, arguments: object = None
) -> dict[str, Any]:
    given = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in given.items() if value is not None}


def put_together(*events: object, used: frozenset[str] = frozenset()) -> tuple[ToolCall, ...]:
    pieces = CallPieces()
    for event in events:
        pieces.take(event)
    return pieces.calls(used)


A1 = ("a", '{"x": 1}')
B2 = ("b", '{"y": 2}')


@table(
    ("events", "expected"),
    [
        pytest.param(
            [
                [piece(0, "p", "a", "")],
                [piece(0, None, None, '{"x"')],
                [piece(0, None, None, ": 1}")],
            ],
            [("p", *A1)],
            id="as_openai_does",
        ),
        pytest.param(
            [
                [piece(0, "p", "a", '{"x"'), piece(1, "q", "b", '{"y": ')],
                [piece(1, None, None, "2}"), piece(0, None, None, ": 1}")],
            ],
            [("p", *A1), ("q", *B2)],
            id="two_at_once",
        ),
        pytest.param(
            [[piece(0, "p", *A1)], [piece(1, "q", *B2)]],
            [("p", *A1), ("q", *B2)],
            id="whole_calls",
        ),
        pytest.param(
            [[piece(0, "p", *A1), piece(0, "q", *B2)]],
            [("p", *A1), ("q", *B2)],
            id="whole_calls_under_one_index",
        ),
        pytest.param(
            [[piece(None, "p", *A1)], [piece(None, "q", *B2)]],
            [("p", *A1), ("q", *B2)],
            id="without_index",
        ),
        pytest.param(
            [[piece(None, "p", "a", '{"x"')], [piece(None, None, None, ": 1}")]],
            [("p", *A1)],
            id="without_index_in_pieces",
        ),
        pytest.param(
            [[piece(0, "p", "a", '{"x"')], [piece(0, "p", "a", ": 1}")], [piece(0, "p", "a", "")]],
            [("p", *A1)],
            id="id_and_name_in_every_piece",
        ),
        pytest.param(
            [
                [piece(0, "p", "get_", "")],
                [piece(0, None, "weather", "")],
                [piece(0, None, None, "{}")],
            ],
            [("p", "get_weather", "{}")],
            id="name_in_pieces",
        ),
        pytest.param(
            [[piece(0, "p", "get_", "")], [piece(0, "p", "get_weather", "{}")]],
            [("p", "get_weather", "{}")],
            id="name_so_far_each_time",
        ),
        pytest.param([[piece(0, "p", "a", {"x": 1})]], [("p", *A1)], id="arguments_as_an_object"),
        pytest.param(
            [[piece(0, "p", *A1)], [piece(0, "p", "a", " ")]],
            [("p", "a", '{"x": 1} ')],
            id="more_of_a_whole_call",
        ),
        pytest.param(
            [[piece(None, "p", "a", ""), piece(None, "q", *B2)]],
            [("p", "a", "{}"), ("q", *B2)],
            id="no_arguments_and_another_id",
        ),
        pytest.param([[piece(0, "p", "a")]], [("p", "a", "{}")], id="no_arguments"),
        pytest.param([piece(0, "p", *A1)], [("p", *A1)], id="not_in_a_list"),
        pytest.param([[piece("0", "p", *A1)]], [("p", *A1)], id="index_as_text"),
        pytest.param(
            [[piece(0, "p", "a", '{"x": ')]], [("p", "a", '{"x": ')], id="malformed_arguments"
        ),
        pytest.param([None, 3, ["x", None]], [], id="no_pieces"),
    ],
)
def test_shapes(events: list[object], expected: list[tuple[str, str, str]]) -> None:
    assert [(call.id, call.name, call.arguments) for call in put_together(*events)] == expected


@table(
    "events",
    [
        pytest.param([[piece(0, None, *A1)], [piece(0, None, *B2)]], id="one_index_no_ids"),
        pytest.param([[piece(None, None, *A1), piece(None, None, *B2)]], id="no_index_no_ids"),
        pytest.param([[piece(0, "p", *A1)], [piece(1, "p", *B2)]], id="one_id_two_indices"),
        pytest.param([[piece(None, "p", *A1)], [piece(None, "p", *B2)]], id="one_id_no_index"),
        pytest.param([[piece(0, "", *A1), piece(1, "", *B2)]], id="empty_ids"),
        pytest.param([[piece(0, 7, *A1), piece(1, 7, *B2)]], id="ids_that_are_no_text"),
    ],
)
def test_ids_are_made_where_they_lack(events: list[object]) -> None:
    made = put_together(*events)
    assert [(call.name, call.arguments) for call in made] == [A1, B2]
    assert len({call.id for call in made} - {""}) == 2
    assert put_together(*events) == made


def test_a_made_id_is_nine_letters_or_digits_and_new() -> None:
    (first,) = put_together([piece(0, "p", *A1)], used=frozenset({"p"}))
    assert len(first.id) == 9
    assert first.id.isalnum()
    (second,) = put_together([piece(0, "p", *A1)], used=frozenset({"p", first.id}))
    assert second.id not in ("p", first.id)
