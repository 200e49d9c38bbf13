"""The bands of length."""

from tests.tables import table

from journeyman.reliability.lengths import band


@table(
    ("messages", "name"),
    [
        (-1, "short"),
        (0, "short"),
        (1, "short"),
        (19, "short"),
        (20, "mid"),
        (99, "mid"),
        (100, "marathon"),
        (100_000, "marathon"),
    ],
)
def test_where_a_band_begins(messages: int, name: str) -> None:
    assert band(messages) == name
