"""E-mail addresses, card numbers and user names, and text that resembles them."""

from tests.tables import table

from journeyman.redaction.personal_data import is_card
from journeyman.redaction.redactor import Redactor


@table(
    ("text", "expected"),
    [
        ("write to Bob.Smith+x@corp.example now", "write to <email:1> now"),
        ("<bob@corp.example>", "<<email:1>>"),
        ("mailto:bob@corp.example?x", "mailto:<email:1>?x"),
        ("a\\nbob@corp.example", "a\\n<email:1>"),
        ("to=bob%40corp.example&x", "to=<email:1>&x"),
        ("jörg@büro.example jörg@corp.example", "<email:1> <email:2>"),
        ("bob@corp.example, BOB@corp.example, al@corp.example", "<email:1>, <email:1>, <email:2>"),
        ("write lea [at] corp [dot] example", "write <email:1>"),
        ("IBAN GB29 NWBK 6016 1331 9268 19", "IBAN <iban:1>"),
        ("DE89370400440532013000", "<iban:1>"),
        ("DE88370400440532013000", "DE88370400440532013000"),
        ("ssn 123-45-6789", "ssn <ssn:1>"),
        ("000-12-3456 1123-45-6789", "000-12-3456 1123-45-6789"),
        ('{"n": 4111111111111111}', '{"n": "<card:1>"}'),
    ],
)
def test_addresses_and_numbers(text, expected):
    assert Redactor().text(text) == expected


@table(
    "text",
    ["4111 1111 1111 1111", "4111-1111-1111-1111", "card 4111111111111111.", "378282246310005"],
)
def test_cards(text):
    assert "<card:1>" in Redactor().text(text)


@table(
    ("digits", "expected"),
    [
        ("4111111111111111", True),
        ("5500000000000004", True),
        ("2223003122003222", True),
        ("378282246310005", True),
        ("6011111111111117", True),
        ("3530111333300000", True),
        ("30569309025904", True),
        ("4111111111111112", False),
        ("9111111111111111", False),
        ("41111111111111", False),
        ("0000000000000000", False),
        ("", False),
    ],
)
def test_card_numbers_are_validated(digits, expected):
    assert is_card(digits) is expected


@table(
    ("text", "expected"),
    [
        ("/home/alice/x", "/home/<user:1>/x"),
        ("/Users/bobby/code", "/Users/<user:1>/code"),
        ("cd /home/alice", "cd /home/<user:1>"),
        ("--- a/home/alice/x", "--- a/home/<user:1>/x"),
        ("git a/home/alice/x b/home/alice/x", "git a/home/<user:1>/x b/home/<user:1>/x"),
        ("C:\\Users\\Alice Smith\\x", "C:\\Users\\<user:1>\\x"),
        ('"C:\\\\Users\\\\alice\\\\x"', '"C:\\\\Users\\\\<user:1>\\\\x"'),
        ("C:/Users/alice/x", "C:/Users/<user:1>/x"),
        ("file:///home/alice/x", "file:///home/<user:1>/x"),
        ("/mnt/c/Users/alice/x", "/mnt/c/Users/<user:1>/x"),
        ("projects/-Users-alice-code/x", "projects/-Users-<user:1>-code/x"),
        ("/home/alice/x of alice, malice", "/home/<user:1>/x of <user:1>, malice"),
        ("alice: /home/alice", "<user:1>: /home/<user:1>"),
        ("/home/al/x and al", "/home/<user:1>/x and al"),
        ("/home/alice/a\\n/home/bob/b", "/home/<user:1>/a\\n/home/<user:2>/b"),
        ('{"alice": "/home/alice/x"}', '{"<user:1>": "/home/<user:1>/x"}'),
    ],
)
def test_home_folders(text, expected):
    assert Redactor().text(text) == expected


def test_a_name_is_redacted_in_later_texts_and_in_a_second_pass():
    redactor = Redactor()
    first = redactor.text("ask alice")
    assert redactor.text('{"path": "/home/alice/x"}') == '{"path": "/home/<user:1>/x"}'
    assert redactor.text("alice said") == "<user:1> said"
    assert redactor.text(first) == "ask <user:1>"


@table(
    "text",
    [
        "/home/runner/work /root/.ssh /home/user/x /Users/Shared/x C:\\Users\\Public\\x",
        "src/pages/home/index.js https://site.example/home/page /home/index.html",
        "lodash@4.17.21 @types/node@20.1.0 actions/checkout@v4 git@github.com:org/repo.git",
        "icon@2x.png user@1000.service x = A@self.weight @app.route",
        "2024-05-06T07:08:09.123Z 1715000000 1715000000123 1715000000123456 1715000000123456789",
        "10.0.0.1 192.168.1.254:8080 1.2.3-rc.4 2001:db8::1 +0000 +02:00 1e+10",
        "0.4111111111111111 x4111111111111111 41111111111111112222 4111111111111111.5",
        "@@ -1,7 +1,7 @@\n 12\n+12025550143\n-12025550143",
        "id 123456789012 order 123-456 and 1234-5678-9012, 978-3-16-148410-0",
        "3f2a9c1d8e7b6a5f4c3d2e1b0a9f8e7d6c5b4a39",
    ],
)
def test_lookalikes_are_not_redacted(text):
    assert Redactor().text(text) == text


@table(
    ("text", "expected"),
    [
        ("/Users/max/x max(a, b)", "/Users/<user:1>/x max(a, b)"),
        ("/home/will/x and I will", "/home/<user:1>/x and I will"),
        ("/home/grace/x grace@build", "/home/<user:1>/x <user:1>@build"),
        ("/home/app2/x import app2", "/home/app2/x import app2"),
        ("/home/mark/x ~mark/y mark", "/home/<user:1>/x ~<user:1>/y mark"),
        ("/home/kzimmer/x kzimmer", "/home/<user:1>/x <user:1>"),
    ],
)
def test_a_name_that_is_a_word_is_replaced_only_as_a_name(text, expected):
    assert Redactor().text(text) == expected
