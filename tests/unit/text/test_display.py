"""Story 8, invisible text: hidden characters are shown as escapes, and can be recovered."""

import re
import sys
import unicodedata

from tests.tables import table

from journeyman.text.display import hidden_characters, is_hidden, visible

ALL_CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1)]


def raw(shown: str) -> str:
    return re.sub(r"\\u\{([0-9a-f]+)\}", lambda found: chr(int(found[1], 16)), shown)


def test_every_control_and_format_character_is_shown_as_an_escape() -> None:
    hidden = [
        one for one in ALL_CHARACTERS if unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp")
    ]
    assert len(hidden) > 200
    for one in hidden:
        shown = visible(f"a{one}b")
        assert shown == f"a\\u{{{ord(one):x}}}b"
        assert raw(shown) == f"a{one}b"


@table("code", [0x2800, 0x3164, 0x115F, 0x1160, 0xFFA0, 0xA0, 0x2003, 0x3000,
                                  0x034F, 0xFE0F, 0xE0100, 0x202E, 0x200B, 0xFEFF, 0x7F, 0x9B],
                         ids=hex)  # fmt: skip
def test_invisible_characters_are_shown_as_escapes(code: int) -> None:
    assert visible(chr(code)) == f"\\u{{{code:x}}}"
    assert hidden_characters(f"a{chr(code)}b") == 1


def test_only_the_ascii_space_is_kept() -> None:
    spaces = [one for one in ALL_CHARACTERS if unicodedata.category(one) == "Zs"]
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
def test_letters_of_all_languages_are_kept(text: str) -> None:
    assert visible(text) == text
    assert hidden_characters(text) == 0


def test_literal_escape_in_the_text_is_distinguishable() -> None:
    pretended, real = r"\u{202e}", "\u202e"
    assert visible(pretended) == r"\u{5c}u{202e}"
    assert visible(real) == pretended
    assert visible("\\" + real) == r"\\u{202e}"
    assert hidden_characters(pretended) == 0
    for text in (pretended, "\\" + real, "\\" + pretended, r"\u{5c}u{202e}", "\\u{" + real):
        assert raw(visible(text)) == text
