"""Story 8, invisible text: what could hide something is shown as an escape, and can be had back."""

import re
import sys
import unicodedata

from tests.tables import table

from journeyman.confirm.shown_text import hidden_characters, is_hidden, visible

EVERY = [chr(code) for code in range(sys.maxunicode + 1)]


def raw(shown: str) -> str:
    return re.sub(r"\\u\{([0-9a-f]+)\}", lambda found: chr(int(found[1], 16)), shown)


def test_every_control_and_format_character_is_shown_as_an_escape() -> None:
    hiding = [one for one in EVERY if unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp")]
    assert len(hiding) > 200
    for one in hiding:
        shown = visible(f"a{one}b")
        assert shown == f"a\\u{{{ord(one):x}}}b"
        assert raw(shown) == f"a{one}b"


def test_what_has_no_meaning_is_shown_as_an_escape() -> None:
    private, half, unassigned = "\ue000", "\ud800", "\U000e0080"
    assert visible(private + half + unassigned) == r"\u{e000}\u{d800}\u{e0080}"


@table("code", [0x2800, 0x3164, 0x115F, 0x1160, 0xFFA0, 0xA0, 0x2003, 0x3000,
                                  0x034F, 0xFE0F, 0xE0100, 0x202E, 0x200B, 0xFEFF, 0x7F, 0x9B],
                         ids=hex)  # fmt: skip
def test_what_looks_like_nothing_is_shown_as_an_escape(code: int) -> None:
    assert visible(chr(code)) == f"\\u{{{code:x}}}"
    assert hidden_characters(f"a{chr(code)}b") == 1


def test_of_all_spaces_only_the_space_stays() -> None:
    spaces = [one for one in EVERY if unicodedata.category(one) == "Zs"]
    assert [one for one in spaces if not is_hidden(one)] == [" "]


@table(
    "text",
    [
        "plain text, 100 %",
        "Grüße",
        "שלום עולם",
        "مرحبا",
        "日本語",
        "e\u0301",
        "नमस्ते",
        "🙂",
        "C:\\up",
    ],
    ids=ascii,
)
def test_letters_of_all_languages_stay(text: str) -> None:
    assert visible(text) == text
    assert hidden_characters(text) == 0


def test_newlines_and_tabs_are_shown_and_are_no_reason_for_a_warning() -> None:
    text = "a\tb\r\nc\u2028d"
    assert visible(text) == "a\\u{9}b\\u{d}\\u{a}c\\u{2028}d"
    assert hidden_characters(text) == 2


def test_an_escape_that_the_text_brings_with_it_is_told_apart() -> None:
    pretended, real = r"\u{202e}", "\u202e"
    assert visible(pretended) == r"\u{5c}u{202e}"
    assert visible(real) == pretended
    assert visible("\\" + real) == r"\\u{202e}"
    assert hidden_characters(pretended) == 0
    for text in (pretended, "\\" + real, "\\" + pretended, r"\u{5c}u{202e}", "\\u{" + real):
        assert raw(visible(text)) == text
