"""Private keys, complete and truncated."""

from tests.tables import table

from journeyman.redaction.redactor import Redactor

BODY = "\n".join(["MIIE" + "aB3d" * 15] * 4)
BEGIN, END = "-----BEGIN {}PRIVATE KEY-----", "-----END {}PRIVATE KEY-----"


KINDS = ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ")
HEADERS = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n"
IN_JSON = "\\n".join((BEGIN.format(""), *BODY.splitlines(), END.format(""), ""))


@table(
    ("text", "expected"),
    [
        *(
            (
                f"before\n{BEGIN.format(kind)}\n{BODY}\n{END.format(kind)}\nafter",
                "before\n<private_key:1>\nafter",
            )
            for kind in KINDS
        ),
        (f"{BEGIN.format('RSA ')}\n{HEADERS}{BODY}", "<private_key:1>"),
        (f"a: {BEGIN.format('')}\n{BODY}", "a: <private_key:1>"),
        (f"{BODY}\n{END.format('')}\nok", "<private_key:1>\nok"),
        (f"GIN RSA PRIVATE KEY-----\n{BODY}", "<private_key:1>"),
        (
            f"{BEGIN.format('')}\n{BODY}\n[… left out …]\n{BODY}\n{END.format('')}",
            "<private_key:1>",
        ),
        (
            f'{{"private_key": "{IN_JSON}", "a": 1}}',
            '{"private_key": "<private_key:1>\\n", "a": 1}',
        ),
        (f'{{"k": "{IN_JSON}", "a": ', '{"k": "<private_key:1>\\n", "a": '),
    ],
    ids=[*KINDS, "headers", "no-end", "no-begin", "cut-begin", "cut-middle", "json", "cut-json"],
)
def test_a_private_key_is_redacted(text, expected):
    assert Redactor().text(text) == expected


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
def test_other_blocks_are_unchanged(text):
    assert Redactor().text(text) == text
