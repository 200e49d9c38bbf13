"""Secrets to plant, in the forms in which they occur in sessions, and ordinary text that must not
be mistaken for a secret. The secrets are generated, so that no scanner reports them as real.
"""

import base64
import json
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from urllib.parse import quote

from journeyman.redaction import families
from journeyman.redaction.families import load_families

MIX = "aB3dE6gH9k"
HEX = "0a1b2c3d4e5f6789"
PASSWORD = "hunter2" * 2
KEY_LINES = "\\n".join(["MIIE" + "aB3d" * 15] * 3)

_SEQUENCES = {
    "mix": "aB3dE6gH9k",
    "hex": "0a1b2c3d4e5f6789",
    "upper": "A1B2C3D4E5F6G7H8",
    "digit": "1234567890",
    "lower": "a2c3d4e5f6g7h8j9",
}
_FORMULA = re.compile(r"\{(mix|hex|upper|digit|lower)(\d{1,4})\}")


def sample(row: families.Family) -> str:
    """The example of a row with its formulas expanded."""
    return _FORMULA.sub(
        lambda found: (_SEQUENCES[found[1]] * (int(found[2]) // 10 + 1))[: int(found[2])],
        row.example,
    )


# The secret that must be removed, and the text that contains it.
CANARIES: dict[str, tuple[str, str]] = {
    "aws": ("AKIA" + "A1B2" * 4, "aws configure set aws_access_key_id {}"),
    "aws-secret": (MIX * 4, "aws_secret_access_key = {}"),
    "github": ("ghp_" + "A1b2" * 9, "git clone https://{}@github.com/org/repo"),
    "github-fine": ("github_pat_" + "A1b2" * 12, "GH_TOKEN={} gh pr list"),
    "github-app": ("ghs_" + "A1b2" * 9, "token: {}"),
    "gitlab": ("glpat-" + MIX * 2, "curl -H 'PRIVATE-TOKEN: {}' https://gitlab.example"),
    "slack": ("xoxb-" + "1234567890-" + MIX * 2, "SLACK={}"),
    "slack-hook": ("T0A1B2C3D/B0A1B2C3D/" + MIX * 2, "https://hooks.slack.com/services/{}"),
    "stripe": ("sk_live_" + MIX * 2, "stripe.api_key = '{}'"),
    "stripe-hook": ("whsec_" + MIX * 3, "secret {}"),
    "openai": ("sk-proj-" + MIX * 5, "export OPENAI_API_KEY={}"),
    "openai-old": ("sk-" + MIX * 4, "key {} works"),
    "anthropic": ("sk-ant-api03-" + MIX * 8, "x-api-key: {}"),
    "google": ("AIza" + MIX * 3 + "abcde", "https://maps.example/api?key={}"),
    "google-oauth": ("ya29." + MIX * 5, "Bearer {}"),
    "google-account": (KEY_LINES, '{{"private_key": "-----BEGIN PRIVATE KEY-----\\n{}\\n"}}'),
    "huggingface": ("hf_" + MIX * 3 + "abcd", "login(token='{}')"),
    "npm": ("npm_" + MIX * 3 + "aB3dE6", "//registry.example/:_authToken={}"),
    "pypi": ("pypi-AgEIcHlwaS5vcmc" + MIX * 6, "twine upload -p {}"),
    "twilio": ("SK" + HEX * 2, "sid {}"),
    "twilio-token": (HEX * 2, '{{"auth_token": "{}"}}'),
    "sendgrid": ("SG." + MIX * 2 + "." + MIX * 4, "mail key {}"),
    "telegram": ("123456789:AA" + MIX * 3 + "abc", "https://api.telegram.org/bot{}/getMe"),
    "discord": ("M" + MIX * 2 + "aB3.GaBcDe." + MIX * 3, "client.run('{}')"),
    "discord-hook": ("1234567890123/" + MIX * 6, "https://discord.com/api/webhooks/{}"),
    "azure": (MIX * 8 + "==", "AccountName=x;AccountKey={};EndpointSuffix=y"),
    "azure-sas": (MIX * 4 + "%3D", "https://x.blob.example/c?sv=2024&sig={}&se=1"),
    "azure-secret": ("abc8Q~" + MIX * 3 + "abcd", "client: {}"),
    "jwt": (f"eyJ{MIX * 2}.eyJ{MIX * 3}.{MIX * 4}", "got {} back"),
    "pem": (KEY_LINES, "-----BEGIN RSA PRIVATE KEY-----\\n{}\\n-----END RSA PRIVATE KEY-----"),
    "pem-cut": (KEY_LINES, "-----BEGIN OPENSSH PRIVATE KEY-----\\n{}"),
    "postgres": ("S3cretPw", "psql postgresql://bob:{}@db.example/shop"),
    "redis": ("S3cretPw", "redis://:{}@cache:6379/0"),
    "mongodb": ("S3cretPw", "mongodb+srv://bob:{}@c0.mongodb.example/x"),
    "ado": ("S3cret,Pw", "Server=db;User Id=sa;Password={};Encrypt=true"),
    "basic": ("Ym9iOmh1bnRlcjI=", "Authorization: Basic {}"),
    "cookie": ("sid=0a1b2c; id=7", "Cookie: {}"),
    "password": (PASSWORD, '{{"password": "{}"}}'),
    "password-option": (PASSWORD, "tool --password {} --verbose"),
    "password-env": (PASSWORD, "export DB_PASSWORD={}"),
    "password-yaml": (PASSWORD, "db:\n  password: {}\n"),
    "password-mysql": (PASSWORD, "mysql -u root -p{} shop"),
    "password-curl": (PASSWORD, "curl -u bob:{} https://host.example"),
    "password-escaped": (PASSWORD, 'x {{\\"password\\": \\"{}\\"}}'),
    "password-cut": (PASSWORD, 'x {{\\"user\\": 1, \\"password\\": \\"{}'),
    "password-said": (PASSWORD, "the password is {}."),
    "email": ("bob.smith@corp.example", "write to {} please"),
    "card": ("4111 1111 1111 1111", "pay with {} please"),
    "home": ("alice", "cat /home/{}/notes.txt"),
    "windows": ("alice", "dir C:\\Users\\{}\\notes"),
    "vault": ("hvs." + MIX * 3, "VAULT={}"),
    "sentry": (HEX * 2, "dsn https://{}@o1.ingest.sentry.example/4"),
    "age": ("AGE-SECRET-KEY-1" + "A1B2" * 12, "{}"),
    "docker": ("dckr_pat_" + MIX * 3, "docker login -u bob -p {}"),
    "aws-slash": ("/0V4xpKVBFqF5mLTorvrtb" + "aB3d" * 4, "aws_secret_access_key = {}"),
    "aws-asked": (MIX * 4, "AWS Secret Access Key [None]: {}"),
    "google-code": ("4/0A" + MIX * 5, "Enter authorization code: {}"),
    "discord-hook-v10": ("1234567890123/" + MIX * 6, "https://discord.com/api/v10/webhooks/{}"),
    "github-user": (HEX * 2 + HEX[:8], "git clone https://{}:x-oauth-basic@github.com/org/repo"),
    "putty": (MIX * 4, "Private-Lines: 1\n{}\nPrivate-MAC: 00"),
    "crypt": ("$6$saltsalt$" + MIX * 4, "root:{}:19000:0:99999:7:::"),
    "dollar": ("$uper5ecretPw", 'password = "{}"'),
    "bracket": ("[Tr0ub4dor3", "DB_PASSWORD={}"),
    "ampersand": ("Tr0ub&4dor3", "DB_PASSWORD={}"),
    "php": (PASSWORD, "$password = '{}';"),
    "define": (MIX * 2, "define('DB_PASSWORD', '{}');"),
    "getenv": (MIX * 2, "os.getenv('API_KEY', '{}')"),
    "fallback": (MIX * 2, "const secret = process.env.JWT_SECRET || '{}'"),
    "typed-in": (MIX * 2, "page.fill('#password', '{}')"),
    "auth-pair": (PASSWORD, "requests.get(url, auth=('bob', '{}'))"),
    "jwt-sign": (MIX * 2, "jwt.sign(payload, '{}')"),
    "dockerfile": (MIX * 2, "ENV API_TOKEN {}"),
    "kubernetes": (PASSWORD, "env:\n- name: DB_PASSWORD\n  value: {}\n"),
    "kubernetes-secret": ("WnpUaWJYMjIyJQ==", "kind: Secret\ndata:\n  config.yaml: {}\n"),
    "xml-attribute": (MIX * 2, '<add key="ApiKey" value="{}" />'),
    "terraform": (MIX * 2, 'variable "db_password" {{\n  default = "{}"\n}}'),
    "table": (MIX * 3, "| api_key | {} |"),
    "columns": (MIX + "Z", "username,password\nbob,{}\n"),
    "section": (MIX * 2, "api:\n  key: {}\n"),
    "percent": (PASSWORD, "q=%22password%22%3A%22{}%22"),
    "curl-short": (PASSWORD, "curl -sSu bob:{} https://host.example"),
    "mongosh": (PASSWORD, "mongosh -u root -p {} --quiet"),
    "ldap": (PASSWORD, "ldapsearch -D cn=admin -w {} -b dc=example"),
    "piped": (PASSWORD, "echo {} | docker login -u bob --password-stdin"),
    "secret-set": (MIX * 2, "gh secret set DEPLOY --body {}"),
    "oracle": (PASSWORD, "sqlplus scott/{}@orcl"),
    "go-mysql": (PASSWORD, "shop:{}@tcp(db:3306)/orders"),
    "pgpass": (PASSWORD, "db.example:5433:shop:bob:{}"),
    "address-sign": ("S3cret#Pw", "psql postgresql://bob:{}@db.example/shop"),
    "told-later": (MIX + "Zx", "A temporary password is generated for root@localhost: {}"),
    "told-german": (MIX, "Das Passwort lautet {}"),
    "russian": (MIX, "пароль: {}"),
    "code-told": ("877589", "Your verification code is {}"),
    "iban": ("DE89370400440532013000", "IBAN: {}"),
    "email-umlaut": ("jörg.haas@büro.example", "write to {} please"),
    "home-share": ("alice", "dir \\\\fs01\\Users\\{}\\notes"),
    "home-percent": ("alice", "open %2Fhome%2F{}%2Fnotes"),
    "prompt": ("alice", "{}@build-7:~/src$ make"),
    "owner": ("alice", "-rw-r--r-- 1 {} staff 512 Jan 2 10:00 a.py"),
    "ssh": ("alice", "ssh {}@10.0.0.3 uptime"),
}


def planted(name: str) -> str:
    canary, text = CANARIES[name]
    return text.format(canary)


# Canaries that are command lines.
COMMANDS = (
    *("aws", "curl-short", "docker", "home", "ldap", "mongosh", "oracle", "password-curl"),
    *("password-env", "password-mysql", "password-option", "piped", "postgres", "secret-set"),
    "ssh",
)


class Family(NamedTuple):
    """A family of tokens recognised by its format; the secret is part of the example. A token of
    fixed length is recognised even if a line break splits it.
    """

    name: str
    pattern: str
    example: str
    has_fixed_length: bool

    @property
    def secret(self) -> str:
        found = re.search(self.pattern, self.example)
        assert found, self.name
        return found[1 if found.re.groups else 0]


@cache
def families() -> list[Family]:
    """Every family that the product recognises by its format."""
    return [
        Family(f"{row.id}-{number}", row.pattern, sample(row), has_fixed_length=row.length > 0)
        for number, row in enumerate(load_families().family)
        if not row.check and row.id != "private_key"
    ]


class Planted(NamedTuple):
    """A text with a secret in some form, and the spellings that must never be shown."""

    name: str
    form: str
    text: str
    spellings: tuple[str, ...]


FORMS = ("plain", "percent", "json", "base64", "broken")
AS_THEY_ARE = {
    *("basic", "card", "cookie", "email", "email-umlaut", "iban", "kubernetes-secret"),
}
"""Canaries that are never shuffled: a checksum, a code or a word depends on the order of their
letters.
"""


@cache
def in_all_forms() -> list[Planted]:
    """Every canary in each form, and every family plain, broken and in one encoding. Each has its
    own secret, so that a leak shows where it comes from. Secrets recognised only by their context
    are not broken: a line break would separate them from it.
    """
    return [*_of_canaries(), *_of_families()]


def _of_canaries() -> Iterator[Planted]:
    for name, (secret, around) in CANARIES.items():
        for form in FORMS[:-1]:
            own = secret if name in AS_THEY_ARE else varied(secret, f"{name} {form}")
            yield _planted(name, form, around.format(own), own)
    for name in COMMANDS:
        secret, around = CANARIES[name]
        own = varied(secret, f"{name} command")
        yield _planted(name, "command", around.format(own), own)


def _of_families() -> Iterator[Planted]:
    for number, family in enumerate(families()):
        encoded = FORMS[1 + number % 3]
        for form in ("plain", encoded, *(["broken"] if family.has_fixed_length else [])):
            secret, own = family.secret, varied(family.secret, f"{family.name} {form}")
            changed = family._replace(example=family.example.replace(secret, own))
            if not re.search(family.pattern, changed.example) or changed.secret != own:
                if form == "broken":
                    continue  # some of its letters are fixed, and other examples contain its halves
                changed, own = family, secret
            yield _planted(family.name, form, f"use {changed.example} now", own)


def varied(secret: str, seed: str) -> str:
    """The secret with the letters after its first third shuffled; capitals stay in the places of
    capitals and digits in those of digits.
    """
    letters = list(secret)
    start = len(secret) // 3 if len(secret) > 12 else 0
    order = random.Random(seed)
    for kind in (str.isdigit, str.islower, str.isupper):
        places = [
            at
            for at in range(start, len(secret))
            if kind(secret[at]) and not {"\\", "%"} & {*secret[max(at - 2, 0) : at]}
        ]
        for at, letter in zip(
            places, order.sample([secret[at] for at in places], len(places)), strict=True
        ):
            letters[at] = letter
    return "".join(letters)


def _planted(name: str, form: str, text: str, secret: str) -> Planted:
    spellings = {secret, json.dumps(secret)[1:-1], quote(secret, safe="")}
    if form == "percent":
        text = quote(text, safe="")
    elif form == "json":
        text = json.dumps({"inner": json.dumps({"rows": [{"text": text}]})})
        spellings.add(json.dumps(json.dumps(secret)[1:-1])[1:-1])
    elif form == "base64":
        data = f"\n{text}\n".encode()
        at = data.index(secret.encode())
        end = at + len(secret.encode())
        text = base64.b64encode(data).decode()
        inside = text[((at + end) // 2 + 2) // 3 * 4 : end // 3 * 4]
        spellings.add(inside if len(inside) > 12 else text)
    elif form == "broken":
        halves = secret[: len(secret) // 2], secret[len(secret) // 2 :]
        text = text.replace(secret, "\n".join(halves))
        spellings.update(halves)
    return Planted(name, form, text, tuple(sorted(spellings)))


SURVIVORS = """\
def get_token(self, token: str) -> Token: return self.token
password = request.form["password"]
token = os.environ["TOKEN"]
api_key=process.env.API_KEY
api_key = os.getenv("OPENAI_API_KEY")
"password": null
"password": ""
{"max_tokens": 1024, "token_count": 12, "primary_key": "id", "author": "Bob", "key": "a1b2c3d4e5"}
{"password": null, "secret": true, "token": "", "api_key": "${API_KEY}"}
{"type":"object","properties":{"password":{"type":"string","description":"The user password"}}}
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
commit 3f2a9c1d8e7b6a5f4c3d2e1b0a9f8e7d6c5b4a39
index 3f2a9c1..8e7b6a5 100644
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
"integrity": "sha512-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08AAAAAAAA=="
id 123e4567-e89b-12d3-a456-426614174000
--password PASSWORD  the password
--token string   GitHub token
Authorization: Bearer $TOKEN
Authorization: Bearer <your token>
headers = {"Authorization": f"Bearer {token}"}
curl -H "Authorization: Bearer ${GITHUB_TOKEN}" https://x.example
postgresql://user:$PASS@host/db
postgres://user:{password}@host/db
password: str
password: string;
token: Token
auth: AuthConfig = None
self.password = password
if token == expected_token:
connect(user=user, password=password)
credentials: "same-origin"
{"credentials": "include", "auth": "none", "token_type": "bearer"}
0.12345678901234567 3.14159265358979
order 123456789012345678901234567890
PWD=/work/src
const key = "some-key"; row.key = 12
for key, value in d.items(): print(key, value)
cache_key = "user:1234:profile"
password must be at least 8 characters
The token is invalid
export PATH=$PATH:/usr/local/bin
@app.route("/login", methods=["POST"])
{"tokens": ["the", "cat"], "usage": {"input_tokens": 12, "output_tokens": "34"}}
secretKeyRef: {name: db, key: password}
SECRET_KEY = config("SECRET_KEY")
if (token) { return token; }
MAX_TOKENS=4096
line 42: token expected ';'
--- PASS: TestIsShadowBranch (0.00s)
-rw-r--r-- 1 root root 4096 2024-01-02 12:34 token.py
pip install foo==1.2.3 --hash=sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a
keyboard: qwerty
expected token: identifier123
auth_user_model = 'auth.User'
docker pull host.example/app@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
{"reservation_id": "EHGLP3", "user_id": "mia_li_3668", "payment_id": "credit_card_4421486"}
  File "/usr/lib/python3.11/site-packages/_pytest/runner.py", line 341, in from_call
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9
aGVsbG8gd29ybGQsIHRoaXMgaXMgb3JkaW5hcnkgdGV4dA==
Cookies are small files. Cookie: see the docs
Total: 1,234.56 EUR, 15% off, 3x4=12
read.password('Password:', creds.password)
unexpected token: IDENTIFIER2
Basic Usage2Guide and a basic plan12345678 that costs
max(a, b), I will mark it with grace
password: z.string().min(8)
pub token: Option<String>,
salt: rounds=12
the password is wrong. Your password is expired, and the password was changed
username and password fields are required
key: linux-node-18-a1b2c3d4
os.getenv("API_KEY", "")
parser.add_argument("--password", "-p", help="the password")
fields = ["username", "password", "token_v2"]
exit code is 137 and the status code is 200
session_id: 8f14e45f-ceea-467f-a0e6-7a1b2c3d4e5f
password = $(openssl rand -base64 24)
$token = $request->bearerToken();
apiKey: process.env.API_KEY!,
call 2024 1000 500 ms, Phone 12 345 678 units
0046 0066 0069; 0046 0066 006A
id 4220315081820346526 of a row
git user.name and user.email are not configured
drwxr-xr-x 2 root root 4096 Jan  1 00:00 .
ssh git@host.example and uid=0(root) gid=0(root)
gh secret set NPM_TOKEN < token.txt
curl -u "$USER:$PASS" https://x.example
kubectl get secret db -o jsonpath='{.data.password}'
docker login -u bob --password-stdin
http://localhost:8080?user=a@b
id,name,price\\n1001,Widget,19.99
""".splitlines()
