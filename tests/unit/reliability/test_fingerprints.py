"""Grouping failures that differ only in variable parts."""

import random

from tests.tables import table

from journeyman.reliability.fingerprints import MAX_CHARACTERS, RULES, FingerprintRule, fingerprint


@table("rule", RULES, ids=[rule.id for rule in RULES])
def test_each_rule_matches_its_example(rule: FingerprintRule) -> None:
    assert fingerprint(rule.example) == rule.fingerprint
    assert rule.reason


@table(
    ("one", "other"),
    [
        ("File not found: /home/a/notes.txt", "File not found: ./b.py:12"),
        ("Error: Reservation EHGLP3 not found", "Error: Reservation XEWRGB not found"),
        ("Payment method gift_card_1234 not found", "Payment method credit_card_9876543 not found"),
        ("No module named 'numpy'", "No module named 'a long one'"),
        ("timed out after 30 seconds", "timed out after 1.5 seconds"),
        ("Expected 80 from C header, got 96", "Expected 7 from C header, got 1,024.5"),
        ('{"error": "No user 12"}', "No user 7"),
        ("<tool_use_error>No file /a/b</tool_use_error>", "No file /c"),
        (
            "File does not exist.\n  Did you mean x.py?",
            "File does not exist. Did you mean .y.yaml?",
        ),
        ("commit 1a2b3c4 is bad", "commit 28596a79-6247-4bc2-a031-f5848b31e039 is bad"),
        ("GET https://a.example/x?y=1&z failed", "GET ws://b.example failed"),
        ("user a@b.example is locked", "user long.name+tag@sub.host.example is locked"),
        ("at 2026-01-02 the job died", "at 2026-01-02T03:04:05+01:00 the job died"),
    ],
)
def test_same_failure_same_fingerprint(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


@table(
    ("one", "other"),
    [
        ("Exit code 1", "Exit code 127"),
        ("HTTP 404 from the server", "HTTP 500 from the server"),
        ("[Errno 2] No such file", "[Errno 13] No such file"),
        ("error TS2304: wrong", "error TS2322: wrong"),
        ("File not found: /a", "Permission denied: /a"),
        ("read/write error", "and/or error"),
        ("KeyError: x", "ValueError: x"),
        ("no field step_1", "no field step_2"),
    ],
)
def test_different_failure_different_fingerprint(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


@table(
    "plain",
    [
        "The user doesn't want to proceed with this tool use.",
        "String to replace not found in file.",
        "Non-delivered order cannot be exchanged",
        "FATAL: connection refused",
        "Not enough seats and/or no price",
        "unsupported encoding utf8 or HTTP2",
    ],
)
def test_plain_text_is_unchanged(plain: str) -> None:
    assert fingerprint(plain) == plain


def test_fingerprint_is_one_line_of_bounded_length() -> None:
    assert fingerprint("  One\n\ttwo\r\n three ") == "One two three"
    long = fingerprint("word " * 500)
    assert len(long) <= MAX_CHARACTERS
    assert long.endswith("…")

    # A long name does not hide the end.
    assert fingerprint(f"open /{'x' * 90}/{'y' * 90}: denied") == "open <path>: denied"

    # A truncated quotation is still a value.
    assert fingerprint('cannot import "some mod') == "cannot import <value>"

    # Noise gets a fingerprint, too.
    generator = random.Random(7)
    for _ in range(200):
        noise = "".join(chr(generator.randrange(1, 0x2FF)) for _ in range(400))
        assert "\n" not in fingerprint(noise)
