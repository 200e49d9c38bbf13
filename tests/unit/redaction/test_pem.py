"""Private keys, whole and cut."""

from tests.tables import table

from journeyman.redaction.redactor import Redactor

BODY = "\n".join(["MIIE" + "aB3d" * 15] * 4)
BEGIN, END = "-----BEGIN {}PRIVATE KEY-----", "-----END {}PRIVATE KEY-----"


@table("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_a_whole_key(kind):
    text = f"before\n{BEGIN.format(kind)}\n{BODY}\n{END.format(kind)}\nafter"
    assert Redactor().text(text) == "before\n<private_key:1>\nafter"


def test_a_key_with_headers():
    headers = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n"
    assert Redactor().text(f"{BEGIN.format('RSA ')}\n{headers}{BODY}") == "<private_key:1>"


@table(
    ("text", "expected"),
    [
        (f"a: {BEGIN.format('')}\n{BODY}", "a: <private_key:1>"),
        (f"{BODY}\n{END.format('')}\nok", "<private_key:1>\nok"),
        (f"GIN RSA PRIVATE KEY-----\n{BODY}", "<private_key:1>"),
        (
            f"{BEGIN.format('')}\n{BODY}\n[… left out …]\n{BODY}\n{END.format('')}",
            "<private_key:1>",
        ),
    ],
    ids=["no-end", "no-begin", "cut-begin", "cut-middle"],
)
def test_a_key_that_was_cut(text, expected):
    assert Redactor().text(text) == expected


def test_a_key_in_json():
    body = BODY.replace("\n", "\\n")
    whole = f'{{"private_key": "{BEGIN.format("")}\\n{body}\\n{END.format("")}\\n", "a": 1}}'
    assert Redactor().text(whole) == '{"private_key": "<private_key:1>\\n", "a": 1}'
    cut = f'{{"k": "{BEGIN.format("")}\\n{body}\\n{END.format("")}\\n", "a": '
    assert Redactor().text(cut) == '{"k": "<private_key:1>\\n", "a": '


@table(
    "text",
    [
        f"-----BEGIN CERTIFICATE-----\n{BODY}\n-----END CERTIFICATE-----",
        f"-----BEGIN PUBLIC KEY-----\n{BODY}\n-----END PUBLIC KEY-----",
        f'if line.startswith("{BEGIN.format("RSA ")}"): return',
        "the words PRIVATE KEY----- alone",
        f'FIRST = "{BEGIN.format("")}"\nLAST = "{END.format("")}"',
    ],
    ids=["certificate", "public", "code", "words", "constants"],
)
def test_what_is_no_private_key(text):
    assert Redactor().text(text) == text
