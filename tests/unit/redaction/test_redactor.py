"""The Redactor's public behaviour: planted canaries are redacted, ordinary text is unchanged, and
the output is stable.
"""

import base64
import json

from tests.canaries import CANARIES, SURVIVORS, planted
from tests.tables import table
from tests.waiting import assert_linear

from journeyman.redaction.redactor import Redactor


def gone(name: str, redacted: str) -> None:
    canary = CANARIES[name][0]
    assert canary not in redacted
    assert json.dumps(canary)[1:-1] not in redacted
    assert Redactor().text(redacted) == redacted


@table("name", CANARIES)
def test_a_canary_in_wrapped_base64(name):
    coded = base64.encodebytes(f"{'x ' * 60}\n{planted(name)}\n".encode()).decode()
    assert Redactor().text(f"file:\n{coded}").startswith("file:\n<encoded:1>")


@table("name", CANARIES)
def test_a_canary_in_an_intent(name):
    gone(name, Redactor().text(f"Please look:\n{planted(name)}\nand go on."))


@table("name", CANARIES)
def test_a_canary_in_arguments(name):
    redacted = Redactor().text(json.dumps({"command": planted(name), "timeout": 3}))
    gone(name, redacted)
    assert json.loads(redacted)["timeout"] == 3


@table("name", CANARIES)
def test_a_canary_in_json_in_json(name):
    inner = json.dumps({"rows": [{"text": planted(name)}]})
    redacted = Redactor().text(json.dumps({"body": json.dumps({"inner": inner})}))
    gone(name, redacted)
    assert "rows" in json.loads(json.loads(json.loads(redacted)["body"])["inner"])


@table("name", CANARIES)
def test_a_canary_in_a_result_that_is_json_with_a_note(name):
    result = json.dumps({"output": planted(name)}, indent=2)
    gone(name, Redactor().text(f"Result: {result}\n[took 3 s]"))


@table("name", CANARIES)
def test_a_canary_in_base64(name):
    text = f"\n{planted(name)}\n".encode()
    for coded in (
        base64.b64encode(text).decode(),
        base64.urlsafe_b64encode(text).decode().rstrip("="),
    ):
        assert Redactor().text(coded) == "<encoded:1>"
        inside = Redactor().text(json.dumps({"data": f"see {coded} there"}))
        assert inside == '{"data": "see <encoded:1> there"}'


@table("line", SURVIVORS)
def test_ordinary_text_is_unchanged(line):
    assert Redactor().text(line) == line
    arguments = json.dumps({"content": line})
    assert Redactor().text(arguments) == arguments


def test_placeholders_are_stable_within_a_pattern():
    redactor = Redactor()
    assert redactor.text("a@x.example b@x.example") == "<email:1> <email:2>"
    assert redactor.text('{"to": "b@x.example"}') == '{"to": "<email:2>"}'
    assert redactor.text("c@x.example") == "<email:3>"
    assert Redactor().text("c@x.example") == "<email:1>"


def test_numbers_of_existing_placeholders_are_not_reused():
    assert Redactor().text("<email:4> and a@x.example") == "<email:4> and <email:5>"


@table(
    ("arguments", "expected"),
    [
        ('{"b":1,"a":"x@y.example"}', '{"b":1,"a":"<email:1>"}'),
        ('{"b": 1, "a": "x@y.example"}', '{"b": 1, "a": "<email:1>"}'),
        ('{\n  "b": 1,\n  "a": "x@y.example"\n}', '{\n  "b": 1,\n  "a": "<email:1>"\n}'),
        ('{"ü": "x@y.example"}', '{"ü": "<email:1>"}'),
        ('{"\\u00fc": "x@y.example"}', '{"\\u00fc": "<email:1>"}'),
        ('{"a": 1.50, "b": "c"}', '{"a": 1.50, "b": "c"}'),
        ('{"a": "x@y.example"', '{"a": "<email:1>"'),
        ('"x@y.example"', '"<email:1>"'),
        ("not json", "not json"),
        ("", ""),
    ],
)
def test_arguments_keep_their_structure(arguments, expected):
    assert Redactor().text(arguments) == expected


HOSTILE = [
    *("a", '{"', "-----BEGIN", "-----BEGIN PRIVATE KEY-----", "1234567890", "[", "\\", '\\"'),
    *("a@", 'password:"', "eyJabcdefgh.", "://a:b", "+1 ", "phone ", "/home/", "C:\\Users\\"),
    *("QUJD", "\0", "\ud800", "<", "sk-", "curl -u ", "password ", "my password is ", "_" * 9),
    *("key:\n", "a,password\n", "name: token\n", "$a_", "alice@h:~", "AB12 ", '"\\n', "api key "),
]


def assert_hostile_text_is_survived(piece: str, length: int) -> None:
    text = piece * (length // len(piece))
    assert "bob@corp" not in Redactor().text(f"{text}\n/ bob@corp.example")


@table("piece", HOSTILE)
def test_a_hostile_text_takes_linear_time(piece):
    assert_linear(lambda size: assert_hostile_text_is_survived(piece, size), 6_000)


def test_deep_nesting_is_cut_off():
    email = '"x@y.example"'
    deep = '{"a":' * 500 + email + "}" * 500
    redacted = Redactor().text(deep)
    assert "x@y" not in redacted
    json.loads(redacted)
    too_deep = "[" * 100_000 + email + "]" * 100_000
    assert "x@y" not in Redactor().text(too_deep)


def test_lone_surrogates_and_nuls():
    assert Redactor().text('{"a": "\\ud800 x@y.example \\u0000"}') == (
        '{"a": "\\ud800 <email:1> \\u0000"}'
    )
    assert Redactor().text("\ud800 x@y.example \0") == "\ud800 <email:1> \0"
