"""Fitting texts into the length limits of services."""

from tests.tables import table

from journeyman.text.truncation import fit_pieces, truncate_middle, utf16_length


def test_length_is_counted_in_utf16_units() -> None:
    assert utf16_length("aж😀") == 4


@table("limit", [0, 5, 60, 100, 200, 4096])
@table("letter", ["x", "ж", "😀"])
def test_truncated_text_fits_the_limit(limit: int, letter: str) -> None:
    text = f"{letter * 300}\nthe end"
    cut = truncate_middle(text, limit)
    assert utf16_length(cut) <= limit
    if limit > 600:
        assert cut == text
    elif limit >= 100:
        assert cut.endswith("\nthe end")


def test_omitted_pieces_are_counted() -> None:
    pieces = [("# ", 0), ("ab", 2), ("cd", 2), ("ef", 2)]
    assert fit_pieces(pieces, 8, "+{}") == "# abcdef"
    assert fit_pieces(pieces, 7, "+{}") == "# ab+4"
