"""The bands of length."""

from tests.tables import table

from journeyman.reliability.lengths import BANDS, band


@table(
    ("messages", "name"),
    [
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


def test_a_length_that_cannot_be_is_the_shortest() -> None:
    assert band(-1) == "short"


def test_bands_go_from_short_to_long_and_leave_no_gap() -> None:
    assert [one.name for one in BANDS] == ["short", "mid", "marathon"]
    assert BANDS[0].at_least == 0
    starts = [one.at_least for one in BANDS]
    assert starts == sorted(set(starts))


def test_the_words_name_the_numbers() -> None:
    assert [one.words for one in BANDS] == [
        "under 20 messages",
        "20 to 99 messages",
        "100 messages or more",
    ]
