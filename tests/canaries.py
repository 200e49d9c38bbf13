"""Secrets to plant, and ordinary text that must not be taken for one. The secrets are made by
formula, so that no scanner takes them for real.
"""

MIX = "aB3dE6gH9k"
HEX = "0a1b2c3d4e5f6789"
PASSWORD = "hunter2" * 2
KEY_LINES = "\\n".join(["MIIE" + "aB3d" * 15] * 3)

# What must be gone, and the text in which it is planted.
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
    "phone": ("+49 30 901820", "call {} please"),
    "card": ("4111 1111 1111 1111", "pay with {} please"),
    "home": ("alice", "cat /home/{}/notes.txt"),
    "windows": ("alice", "dir C:\\Users\\{}\\notes"),
    "vault": ("hvs." + MIX * 3, "VAULT={}"),
    "sentry": (HEX * 2, "dsn https://{}@o1.ingest.sentry.example/4"),
    "age": ("AGE-SECRET-KEY-1" + "A1B2" * 12, "{}"),
    "docker": ("dckr_pat_" + MIX * 3, "docker login -u bob -p {}"),
}


def planted(name: str) -> str:
    canary, text = CANARIES[name]
    return text.format(canary)


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
""".splitlines()
