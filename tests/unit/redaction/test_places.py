"""Secrets recognised by the names before them: what names and values mean, and the forms in which
a text combines the two.
"""

from tests.tables import table

from journeyman.redaction.redactor import Redactor
from journeyman.redaction.secret_values import (
    field_kind,
    is_reference,
    looks_random,
    value_field_kind,
)

RANDOM = "Zq8" + "x7Kp" * 5


@table(
    ("name", "place"),
    [
        ("password", "password"),
        ("DB_PASSWORD", "password"),
        ("userPassword", "password"),
        ("password_confirmation", "password"),
        ("PGPASSWORD", "password"),
        ("pwd", "password"),
        ("smtp_pass", "password"),
        ("passphrase", "password"),
        ("api_key", "secret"),
        ("apikey", "secret"),
        ("x-api-key", "secret"),
        ("OPENAI_API_KEY", "secret"),
        ("aws_secret_access_key", "secret"),
        ("clientSecret", "secret"),
        ("accessToken", "secret"),
        ("refresh_token", "secret"),
        ("private_key", "secret"),
        ("ConnectionString", "secret"),
        ("token", "loose"),
        ("secret", "loose"),
        ("credentials", "loose"),
        ("auth", "loose"),
        ("STRIPE_KEY", "loose"),
        ("pin", "code"),
        ("cvv", "code"),
        ("ssn", "code"),
        ("verification_code", "code"),
        ("Authorization", "header"),
        ("Set-Cookie", "cookie"),
        ("cardNumber", "card"),
        ("max_tokens", "loose"),
        *((name, "password") for name in ("DBPASS", "rootpw", "storepass", "requirepass", "psk")),
        *((name, "password") for name in ("contraseña", "senha", "пароль", "密码", "mot_de_passe")),
        *((name, "secret") for name in ("secret_key_base", "private_key_id")),
        *((name, "loose") for name in ("secret_id", "unseal_key", "PHPSESSID", "client-key-data")),
        *((name, "loose") for name in ("GITHUB_PAT", "SALT", "session_key")),
        # Lookalikes.
        *(
            (name, None)
            for name in (
                *(
                    "key",
                    "primary_key",
                    "public_key",
                    "sort_key",
                    "cache_key",
                    "keyboard",
                    "author",
                ),
                *(
                    "token_count",
                    "tokenizer",
                    "token_type",
                    "secret_name",
                    "password_policy",
                    "auth_url",
                ),
                *(
                    "passenger",
                    "compass",
                    "PASS",
                    "spinner",
                    "zip_code",
                    "status_code",
                    "error_code",
                ),
                *("secretary", "keys", "monkey", "opinion", "", "x", "PRIMARY_KEY", "phone_type"),
            )
        ),
    ],
)
def test_field_kinds_of_names(name, place):
    assert field_kind(name) == place


@table(
    ("fields", "place"),
    [
        ({"name": "DB_PASSWORD", "value": "x"}, "password"),
        ({"selector": "input#password", "text": "x"}, "password"),
        ({"element": "Password field", "text": "x"}, "password"),
        ({"name": "Bob", "value": "x"}, None),
        ({"name": "DB_PASSWORD"}, None),
    ],
)
def test_a_field_can_name_another(fields, place):
    assert value_field_kind(fields) == place


@table(
    "value",
    [
        *("", "  ", "$TOKEN", "${TOKEN}", "$(pass show x)", "%TOKEN%", "{{ secret }}", "{token}"),
        *("<your token>", "[redacted]", "xxx", "***", "…", "os.environ['X']", "process.env.X"),
        *("secrets.TOKEN", "self.token", "op://vault/item", "null", "None", "true", "string"),
        *("your-api-key", "YOUR_API_KEY", "/run/secrets/db", "password", "access_token", "API key"),
        *("<password:3>", "sk-...abcd", "-", "0000000", "$this->token", "$env:TOKEN", "!Ref Db"),
        *("process.env.K8S_TOKEN", "/opt/Python311/bin", "(hidden)", "my-secret-key", "{}"),
    ],
)
def test_references_are_recognised(value):
    assert is_reference(value)


@table(
    "value",
    [
        *("hunter2", "changeme", "correct horse", "Pa$$word1", "a1b2c3", "$uper5ecretPw"),
        *("!Qaz2wsxEdc", "(Tr0ub4dor3", "<Tr0ub4dor3", "{Tr0ub4dor3}", "data.Xk92Lm"),
        *("the-quick-brown-fox", "/0V4xpKVBFqF5mLTorvrtbNLJgj5", "$2b$12$aB3dE6gH9k"),
    ],
)
def test_literal_values_are_not_references(value):
    assert not is_reference(value)


@table(
    ("value", "expected"),
    [
        (RANDOM, True),
        ("d41d8cd98f00b204e9800998ecf8427e", True),
        ("123e4567-e89b-12d3-a456-426614174000", True),
        ("aBcDeFgHiJkLmNoPqR", True),
        ("production", False),
        ("my-secret-name", False),
        ("user_service_v2", False),
        ("1.2.3", False),
        ("2024-05-06T07:08:09Z", False),
        ("123456789", False),
        ("short1", False),
    ],
)
def test_what_looks_random(value, expected):
    assert looks_random(value) is expected


WAYS = {
    "environment": ("DB_PASSWORD=supersecret", "supersecret"),
    "export": (f"export API_KEY={RANDOM}", RANDOM),
    "dotenv-special": ("PASSWORD=p@ss,w0rd!$", "w0rd"),
    "yaml": ("db:\n  password: hunter2\n", "hunter2"),
    "yaml-letters": ("user: bob\npassword: hunter\n", "hunter"),
    "yaml-five-letters": ("user: bob\npassword: tiger\n", "tiger"),
    "ini": ("[db]\npassword = hunter2\n", "hunter2"),
    "json": ('{"a": 1, "password": "hunter2"} done', "hunter2"),
    "python-dict": ("{'password': 'hunter2', 'a': 1}", "hunter2"),
    "escaped-quote": ('{"password": "hun\\"ter2", "a": {', "ter2"),
    "escaped": ('x {\\"password\\": \\"hunter2\\", \\"a', "hunter2"),
    "escaped-twice": ('x {\\\\\\"password\\\\\\": \\\\\\"hunter2\\\\\\"', "hunter2"),
    "cut-json": ('{"user": "bob", "password": "hunter2x', "hunter2x"),
    "keyword": ('connect(host="db", password="hunter2")', "hunter2"),
    "annotated": (f'api_key: str = "{RANDOM}"', RANDOM),
    "javascript": (f"const apiKey = '{RANDOM}';", RANDOM),
    "call": (f'client.set_password("{RANDOM}")', RANDOM),
    "compared": ('if password == "hunter2":', "hunter2"),
    "option": ("tool --password hunter2 --x", "hunter2"),
    "option-equals": (f"tool --api-key={RANDOM} run", RANDOM),
    "option-quoted": ("tool --password 'two words' run", "two words"),
    "query": ("GET /x?user=bob&password=letmein&y=1", "letmein"),
    "ado": ("Server=tcp:db;User Id=sa;Password=My$ecret,Pw1;Encrypt=true", "My$ecret"),
    "ado-pwd": ("Server=db;Uid=sa;Pwd=abc123;", "abc123"),
    "jdbc": ("jdbc:mysql://h/db?user=x&password=letmein", "letmein"),
    "libpq": ("host=db user=bob password=hunter2 dbname=shop", "hunter2"),
    "npmrc": (f"//registry.example/:_authToken={RANDOM}", RANDOM),
    "header": (f"Authorization: Bearer {RANDOM}", RANDOM),
    "header-basic": ("Authorization: Basic Ym9iOmh1bnRlcjI=", "Ym9i"),
    "header-token": ("curl -H 'Authorization: Token abcdef123456' x", "abcdef123456"),
    "header-key": ('curl -H "X-Api-Key: abcd1234efgh" x', "abcd1234efgh"),
    "header-own": (f"Authorization: Acme {RANDOM}", RANDOM),
    "key-phrase": ('{"api_key": "correct horse battery"}', "correct"),
    "header-json": (f'{{"headers": {{"Authorization": "Bearer {RANDOM}"}}}}', RANDOM),
    "cookie": ("Cookie: sid=abc; theme=dark\nAccept: */*", "sid=abc"),
    "set-cookie": ("Set-Cookie: session=xyz; Path=/; HttpOnly", "xyz"),
    "cookie-json": ('{"Cookie": "a=b; c=d"}', "a=b"),
    "xml": ("<user>bob</user><password>hunter2</password>", "hunter2"),
    "told": ("log in as bob, password: hunter2, then go on", "hunter2"),
    "uuid": ('{"api_key": "123e4567-e89b-12d3-a456-426614174000"}', "123e4567"),
    "hash": ('{"apiKey": "d41d8cd98f00b204e9800998ecf8427e"}', "d41d8cd9"),
    "twilio": ("auth_token: d41d8cd98f00b204e9800998ecf8427e", "d41d8cd9"),
    "docker": ('{"auths": {"ghcr.io": {"auth": "Ym9iOmh1bnRlcjI="}}}', "Ym9i"),
    "list": (f'{{"tokens": ["{RANDOM}"]}}', RANDOM),
    "inside": (f'{{"credentials": {{"a": "{RANDOM}"}}}}', RANDOM),
    "twice": ('{"password": "hunter1", "password": "hunter2"}', "hunter1"),
    "phrase": ('{"password": "correct horse battery staple"}', "horse"),
    "number": ('{"pin": 1234, "a": 5678}', "1234"),
    "number-cut": ('{"pin": 1234, "a": "', "1234"),
    "named": ('[{"name": "DB_PASSWORD", "value": "hunter2"}]', "hunter2"),
    "markdown": ("**Password:** hunter2", "hunter2"),
    "diff": ("+  password: sommergarten", "sommergarten"),
    "listing": ("    12\t  password: sommergarten", "sommergarten"),
    "found": ("config.yml:12:  password: sommergarten", "sommergarten"),
    "logfmt": ('level=info msg="auth ok" passwd=fZnxZgHzpIoD', "fZnx"),
    "rust": (f'const API_KEY: &str = "{RANDOM}";', RANDOM),
    "unequal": ('if password != "hunter2":', "hunter2"),
    "send-keys": (f"find(By.ID, 'password').send_keys('{RANDOM}')", RANDOM),
    "arrow": (f"token -> {RANDOM}", RANDOM),
    "behind-json": ('{"a": "b"}\n' * 60 + '{"name": "DB_PASSWORD", "value": "garten"}', "garten"),
    "string-in-text": ('sent "{\\"t\\": \\"ENV API_TOKEN ' + RANDOM + '\\"}" ok', RANDOM),
    "typed": ('{"selector": "#password", "text": "hunter2"}', "hunter2"),
}


@table("way", WAYS)
def test_a_secret_is_redacted_in_every_form(way):
    text, secret = WAYS[way]
    redacted = Redactor().text(text)
    assert secret not in redacted
    assert redacted != text
    assert Redactor().text(redacted) == redacted


def test_text_around_a_secret_is_unchanged():
    assert (
        Redactor().text("host=db password=hunter2 user=x") == "host=db password=<password:1> user=x"
    )
    assert Redactor().text('{"a": 1, "pin": 1234}') == '{"a": 1, "pin": "<secret:1>"}'
    assert Redactor().text('cut {"pin": 1234, "a') == 'cut {"pin": <secret:1>, "a'
    header = f"Authorization: Bearer {RANDOM}\nAccept: */*"
    assert Redactor().text(header) == "Authorization: Bearer <secret:1>\nAccept: */*"


def test_a_known_secret_is_redacted_without_its_name():
    redactor = Redactor()
    assert redactor.text("password=hunter2abc9") == "password=<password:1>"
    assert redactor.text("I typed hunter2abc9.") == "I typed <password:1>."
    assert redactor.text("hunter2abc99") == "hunter2abc99"
