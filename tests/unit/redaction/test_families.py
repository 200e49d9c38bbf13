"""The rows of families.toml: their format, examples and cost, and the text they must not match."""

import re

from tests.canaries import sample
from tests.tables import table
from tests.waiting import assert_linear

from journeyman.redaction.families import Family, compiled_pattern, load_families
from journeyman.redaction.redactor import Redactor

ROWS = load_families().family
FORMS = [row for row in ROWS if not row.check and row.id != "private_key"]


def names(row: Family) -> str:
    return f"{row.id}: {row.about}"


@table("row", ROWS, ids=names)
def test_a_row_has_the_right_form(row: Family):
    assert re.fullmatch(r"[a-z][a-z_]{2,24}", row.id)
    assert all(len(anchor) >= 2 for anchor in row.anchors)
    assert re.compile(row.pattern).groups <= 1
    assert row.about
    assert row.check or row.source


@table("row", FORMS, ids=names)
def test_an_example_matches_completely(row: Family):
    match = compiled_pattern(row).search(sample(row))
    assert match
    group = match.lastindex or 0
    assert group or match[0] == sample(row)
    assert not sample(row)[match.end(group) :][:1].isalnum()
    assert not row.length or len(match[group]) == row.length


@table("row", [row for row in FORMS if row.anchors], ids=names)
def test_a_match_begins_within_reach_of_an_anchor(row: Family):
    match = compiled_pattern(row).search(sample(row))
    assert match
    flags = re.IGNORECASE if "(?i" in row.pattern else 0
    places = [
        hit.start() - match.start()
        for anchor in row.anchors
        for hit in re.finditer(re.escape(anchor), sample(row), flags)
        if match.start() <= hit.start() and hit.end() <= match.end()
    ]
    assert places
    assert min(places) <= row.reach


@table("row", ROWS, ids=names)
def test_a_hostile_text_takes_linear_time(row: Family):
    """A row with unbounded backtracking would take minutes on these."""
    example = sample(row)
    pieces = [*row.anchors[:2], example[: len(example) // 2], example[:-1] + "\x00"]
    fillers = ["a", "0", "aB3", "0a", "A", " ", "key ", "-", ".", "=", "\n"]

    def search(size: int) -> None:
        texts = [piece * (size // len(piece)) for piece in pieces]
        texts += [example[:6] + filler * (size // len(filler)) for filler in fillers]
        texts += [filler * (size // len(filler)) for filler in fillers]
        for text in texts:
            for _ in compiled_pattern(row).finditer(text):
                pass

    assert_linear(search, 500)


MIX, HEX = "aB3dE6gH9k" * 4, "0a1b2c3d4e5f6789" * 2
AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@table(
    "text, secret",
    [
        (f'Client("AKIAIOSFODNN7EXAMPLE", "{AWS}")', AWS),
        (f"aws secret: {AWS}", AWS),
        (f"the secret access key is {AWS}, do not share it", AWS),
        (f"aws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = {AWS}\n", AWS),
        (f'client = SomethingClient("{MIX}")', MIX),
        (f"new OpenAI('{MIX}')", MIX),
        (f'stripe.Stripe("{MIX}")', MIX),
        (f'ApiClient("https://host.example", "{MIX}")', MIX),
        (f'acme.NewClient(\n    "{HEX}")', HEX),
        (f"npm config set //registry.example/:_authToken {HEX}", HEX),
        (f"//registry.example/:_authToken={HEX}", HEX),
        ("_auth=Ym9iOmh1bnRlcjI=", "Ym9iOmh1bnRlcjI="),
        ("vault kv put secret/app value=hunter2", "hunter2"),
        ("vault kv put -mount=kv app user=bob pass=hunter2", "hunter2"),
        (f"DD-API-KEY: {HEX}", HEX),
        (f"our Datadog API key is {HEX}", HEX),
        (f'algoliasearch("A1B2C3D4E5", "{HEX}")', HEX),
        (f"Authorization: SSWS 00{MIX}", f"00{MIX}"),
        (f"{HEX}-0a1b2c3d-4e5f6789", f"{HEX}-0a1b2c3d-4e5f6789"),
        (f"pubkey-{HEX}", f"pubkey-{HEX}"),
        *((f"{prefix}_{MIX}", f"{prefix}_{MIX}") for prefix in ("vcp", "vci", "vca", "vcr", "vck")),
        (
            "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
            "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
        ),
    ],
)
def test_a_secret_is_found(text, secret):
    assert secret not in Redactor().text(text)


_UUID = "0a1b2c3d-4e5f-4789-8a1b-2c3d4e5f6789"


@table(
    "text",
    [
        # commits, identifiers, digests
        "commit 3f2a9c1b7d5e4f60718293a4b5c6d7e8f9012345",
        f"request {_UUID} took 3 ms",
        f"api/{_UUID}/sdk key {_UUID}",
        f"sha256:{HEX * 2}",
        f"{HEX}  archive.tar.gz",
        "integrity sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGe==",
        f'"resolved": "https://registry.example/a/-/a-1.2.3.tgz#{HEX}01234567"',
        f"tests/test_a.py::test_b[{HEX}] PASSED",
        f"etag: W/{HEX}",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:app/key-aB3dE6",
        "projects/acme/secrets/key/versions/1",
        # names that begin like a token
        "sk-learn sk-learn-contrib-imbalanced pat-match pat-eu key-value-store fc-list ak-button",
        "npm_config_registry npm_lifecycle_event hf_hub_download hf_transfer gsk_surface r8_unorm",
        "re_compile_pattern re_match_object re_Namespace_separator fw_update_available xai-tool",
        "api-gateway-service sdk-core-typescript rel-noopener md-button md-outlined-text-field",
        "secret_key_base_is_missing_here secret-management-service-account live_reload_server_port",
        "sk_test_configuration_of_the_module cs_precision_bidirectional ck_editor_balloon_toolbar",
        "pk_constraint_name pk_columns_of_the_table ion_range_slider glc_initialise_the_context",
        "task-sk-20240101 ASIAN ACCOUNT AKIAble SCWARTZ EXOTIC APIKEY API-GATEWAY API-Management",
        "SG.example.com is a host; sl.read() st.write(x) act.run() hawk.eye() pat.match(x)",
        "dp.stack.push hvs.x vf.dm mfa.required 1.0.2 0.10.1 1000.5",
        "v1.0-alpha v1.0-rc1-20240101 do_v1_migration GR1348 t1.id = t2.id",
        # environment variables and settings without their value
        "export DATADOG_API_KEY AWS_SECRET_ACCESS_KEY ALGOLIA_ADMIN_KEY TWITTER_BEARER_TOKEN",
        "AWS_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY DD_API_KEY=${DD_API_KEY}",
        "//registry.example/:_authToken=${NPM_TOKEN}",
        "vault kv put secret/app value=@file.json",
        "vault kv put secret/app value=$VALUE",
        "okta_client_secret: your-okta-client-secret-goes-here",
        "twilio_auth_token = os.environ['TWILIO_AUTH_TOKEN']",
        # programs
        "this._authToken = data.accessToken; self._auth = HTTPBasicAuth(user, password)",
        'client = Client("https://host.example/api/v1")',
        'client = InferenceClient("meta-llama/Meta-Llama-3-8B-Instruct")',
        'session = Session("my-service-name-v2-production")',
        'TestClient("application/vnd.example.v2+json") createApi("UserManagementServiceV2")',
        'token("AccessTokenResponseHandlerV2") api("/v1/users/123/items/456")',
        '@pytest.mark.parametrize("secret", ["a"]) @app.route("/secret/key")',
        ".btn-primary-2 .md-icon-button .pk-2 { color: #0a1b2c } sk-fading-circle",
        "!function(e,t){e.key=t.token,e.secret=n(1234),t.api_key=r}(window,document);",
        "src/main/java/com/amazonaws/services/secretsmanager/AWSSecretsManagerKey1Client.java",
        "from aws_cdk import aws_secretsmanager as secretsmanager, aws_apigateway_api_key_source1",
        "jira key ABC-1234 in project PLATFORM, atlassian token documentation page",
        "cat > /etc/sentry/key.pem; heroku keys:add; snyk auth --help; railway token is missing",
        # encoded data without secrets
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
        "data:font/woff2;base64,d09GMgABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0",
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUV2VENDQXFXZ0F3SUJBZ0lS",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk5dXN0YW5leGFtcGxla2V5Zm9ydGVzdHM bob@host",
        "2026-11-17T08:30:00.123456Z 12:AM 10:AB 192.168.0.1:8080 (2/16) 3/12345",
        "| 1 | 2 | 1234567890123456| x |",
    ],
)
def test_lookalikes_are_not_redacted(text):
    assert Redactor().text(text) == text
