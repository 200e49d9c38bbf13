"""Ordinary text that resembles a secret: none of it is redacted."""

from tests.tables import table

from journeyman.redaction.redactor import Redactor

HARMLESS = [
    line
    for line in r"""
## commits, branches, patches
commit 9f1c2e7ab04d5586c3e1f0a7b29d8e64c5a1f3b0 (HEAD -> main, origin/main)
Merge: 4be1d0c 77a2f9e
index 83db48f..bf269f4 100644
From 2c7d9e0f4b6a8135c9e7f1d2a3b4c5d6e7f80912 Mon Sep 17 00:00:00 2001
git cherry-pick -x 5f3759df0badc0de5f3759df0badc0de5f3759df
git log --format='%H %an %s' v2.14.0..v2.15.0-rc.1
refs/heads/feature/APP-1234-token-bucket-rate-limiter
HEAD is now at 1d0f3c5 Fix the token refresh when the clock is skewed
@@ -118,7 +118,9 @@ class TokenStream:
Subproject commit 0b5e21c7d8f9a6e4b3c2d1e0f9a8b7c6d5e4f3a2
## ids
123e4567-e89b-42d3-a456-426614174000
request_id=01HZX3T8V5W7Y9A2C4E6G8J0KM took 41 ms
traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
toolu_01A09q90qw90lq917835lq9 call_9xQ2mVtR4kLp0sWz7bYc3dEf
chatcmpl-8aZk3Qm2Lw9Xc7Vb5Nn1Pp4Rr
msg_013Zva2CMHLNnjNjJKqJ2EF5 finished with end_turn
order ORD-2026-000481-DE, invoice INV/2026/00912
vpc-0a1b2c3d4e5f67890 subnet-0f9e8d7c6b5a43210 sg-01234567890abcdef
arn:aws:iam::123456789012:role/deploy-from-ci
gid://shop/Product/7712345678901
{"user_id": "u_48213", "row_id": 884120017, "trace": "b7ad6b7169203331"}
pod/web-7d4b9c6f5d-x2k8p   1/1   Running   0   3d
## digests and checksums
sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
d41d8cd98f00b204e9800998ecf8427e  empty.bin
da39a3ee5e6b4b0d3255bfef95601890afd80709  -
MD5 (dist/app.tar.gz) = 9e107d9d372bb6826bd81d3542a419d6
blake2b-256: 0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8
Digest: sha256:ee89a1b2c3d4e5f60718293a4b5c6d7e8f9012a3b4c5d6e7f8091a2b3c4d5e6f
etag: W/"5e15153d-120f"
crc32 0x1c291ca3, adler32 0x11e60398
SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8 (ED25519)
## lock files and registries
"integrity": "sha512-Z7Q8m1pT4xVbN0cR2wKjL5yHsD9fGaE3uXoIiP6tBqMvCnS7kWzJrYhUeFgA1dO0lQxTbVcRmNpKsLwHjGfDsA=="
  resolved "https://packages.example/lodash/-/lodash-4.17.21.tgz#679591c564c3bffaae8454cf0b3df370c3d6911c"
code.example/x/sync v0.7.0 h1:YsImfSBoP9QPYL0xyKJPq0gcaJdG3rInoqxTWbfQu9M=
checksum = "d468802bab17cbc0cc575e9b053f41e72aa36bfa6b7f55e3529ffa43161b97fa"
    --hash=sha256:8a7e1b3f5c9d2e4a6b8c0d1f3e5a7b9c1d3e5f7a9b1c3d5e7f9a1b3c5d7e9f1a \
source = "registry+https://index.example/crates"
{ url = "https://files.example/packages/ab/cd/numpy-2.1.0.tar.gz", hash = "sha256:7dc90da0081f7e1da49ec4e398ede6a8e9cc4f5ebe5f9e06b443ed889ee9aaa2" }
nix-hash: sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
"node_modules/esbuild-linux-64": {"version": "0.15.18", "cpu": ["x64"], "optional": true}
specifier: ^5.4.0  version: 5.4.10(@types/node@20.14.9)(terser@5.31.1)
## versions
Python 3.11.9 (main, Apr  6 2024, 17:59:24) [GCC 13.2.0] on linux
pydantic-core==2.20.1; python_version >= "3.8"
requires node >=18.17.0 <21 || ^22.2.0
v1.0.0-beta.11+exp.sha.5114f85
openssl 3.0.13 30 Jan 2024 (Library: OpenSSL 3.0.13 30 Jan 2024)
ubuntu-24.04.1-live-server-amd64.iso
## code
@pytest.mark.parametrize("token", ["a", "b"], ids=str)
@app.get("/users/{user_id}/tokens", response_model=list[TokenOut])
@Injectable({ providedIn: 'root' }) export class AuthService {
@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
def verify_password(plain: str, hashed: str) -> bool: ...
const { data: session, status } = useSession({ required: true })
if (!password) throw new Error("Password is required")
let api_key = std::env::var("API_KEY").expect("API_KEY is not set");
password: str = Field(min_length=12, repr=False)
func (t *Token) Expired(now time.Time) bool { return now.After(t.exp) }
secret = secrets.token_urlsafe(32)
token = token.strip() or None
for token in tokenizer.encode(text, add_special_tokens=False):
SELECT id, password_hash IS NULL AS no_password FROM users WHERE deleted_at IS NULL;
ALTER TABLE accounts ADD COLUMN api_key_id uuid REFERENCES api_keys (id);
from sklearn.model_selection import train_test_split  # sk-learn, not a key
import { pat_match, sk_buff } from "./pattern-matching"
assert response.headers["authorization"].startswith("Bearer ")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
monkeypatch.delenv("GITHUB_TOKEN", raising=False)
TOKEN_PATTERN = re.compile(r"[A-Za-z0-9_-]{20,}")
credentials = service_account.Credentials.from_service_account_file(path)
private readonly key = Symbol("key");
interface Props { password?: string; onSecret(secret: string): void }
## minified code, styles, pictures
!function(e,t){"object"==typeof exports?module.exports=t():e.Fn=t()}(this,function(){var r=0x5f3759df;return r>>>1});
var a=[].slice,b={}.hasOwnProperty,c=function(d){return d&&d.__esModule?d:{default:d}};
.sk-fading-circle .sk-circle12:before{-webkit-animation-delay:-.1s;animation-delay:-.1s}
<div class="pk-btn sk_button--primary css-1dbjc4n r-1awozwy r-18u37iz" data-testid="token-input"></div>
.MuiButton-root-142{color:#ff00aa80;background:#0A1B2C}
url(data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)
//# sourceMappingURL=main.8f3b2c1d.chunk.js.map
AAAA,CAAC,SAAUA,EAAGC,GACZ,MAAMC,EAAI,EAEV,OAAOA
<path d="M12 2C6.48 2 2 6.48 2 12s4.48 10 10 10 10-4.48 10-10S17.52 2 12 2zm0 18c-4.41 0-8-3.59-8-8"/>
\u0041\u0042\u0043 \x1b[1;32mPASS\x1b[0m tests/test_token.py::test_refresh[expired-401]
## tools, logs and configuration
FAILED tests/auth/test_login.py::TestLogin::test_wrong_password[None-401] - AssertionError
E       fixture 'api_token' not found
error TS2345: Argument of type 'string | undefined' is not assigned to parameter of type 'Token'.
2026-11-17T08:34:08.123456Z INFO  auth: token refreshed for 3 sessions in 12.5ms
Usage: tool login [--token-file FILE] [--password-stdin] [--no-verify]
  -p, --password-file string   Path of a file with the password
Set OPENAI_API_KEY or ANTHROPIC_API_KEY before you run this.
export AWS_PROFILE=staging AWS_REGION=eu-central-1
env: GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}
password: ${DB_PASSWORD:?set it in .env}
api_key: !vault secret/data/shop#api_key
key = "{{ .Values.auth.existingSecretKey }}"
token: <your-token-here>
POSTGRES_PASSWORD_FILE=/run/secrets/postgres_password
cache-key: deps-v3-Linux-X64-{{ hashFiles('**/package-lock.json') }}
--mount=type=secret,id=npmrc,target=/root/.npmrc
image: host.example/team/app:2026.11.17-9f1c2e7
http://127.0.0.1:8000/callback?state=done&page=2#section-4
https://docs.example/api/v2/tokens#create-a-token
git@code.example:team/app.git
-rwxr-xr-x 1 root root 1048576 Nov 17 08:34 libcrypto.so.3
lrwxrwxrwx 1 root root 24 Jan  2 2026 current -> releases/20261117083408
10.0.12.7 - - [17/Nov/2026:08:34:08 +0000] "POST /login HTTP/1.1" 401 57
2001:0db8:85a3:0000:0000:8a2e:0370:7334 and 00:1b:44:11:3a:b7
0000000 7f45 4c46 0201 0100 0000 0000 0000 0000
RIP: 0010:copy_page+0x7/0x10 RSP: 0018:ffffc90000a3bd48
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8v3mQ1pZ0xW7bKcR5tYhN2dFgS4aLeUoXiVnMqBsTw deploy key
-----BEGIN CERTIFICATE-----
## words and numbers
The password policy asks for 12 characters, one of them a digit.
She forgot her password and asked for a token; the secret was out.
Passwort vergessen? Das Token ist abgelaufen.
The key idea: a token bucket refills at 100 tokens per second.
1,234,567.89 EUR; 3.14159265358979323846; 6.02214076e23; 0xDEADBEEF
2026-11-17 08:34:08.000123456 UTC+01:00, week 47, day 321
ISBN 978-3-16-148410-0, DOI 10.1000/182, RFC 9110, CVE-2026-12345
GATTACAGATTACACCGGTTAACCGGTTAAGATTACA
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
abcdefghijklmnopqrstuvwxyz0123456789
x = 17; y = 23; max_tokens = 4096; temperature = 0.7
Room 4.117, tables 12-15, tickets 100200 to 100245
""".strip("\n").splitlines()  # noqa: E501 - real lines
    if not line.startswith("## ")
]


@table("line", HARMLESS)
def test_ordinary_text_is_unchanged(line):
    assert Redactor().text(line) == line
    assert Redactor().text(f"It said:\n  {line}\nand ended.") == f"It said:\n  {line}\nand ended."
