"""Every row of the tables of secrets is a case: its example must be replaced by this row."""

from tests.tables import table

from journeyman.redaction.login_row import Login
from journeyman.redaction.logins import LOGINS
from journeyman.redaction.pairs import PAIRS, Pair
from journeyman.redaction.placeholders import Placeholders
from journeyman.redaction.redactor import Redactor
from journeyman.redaction.token_row import Token
from journeyman.redaction.tokens import TOKENS, without_tokens
from journeyman.redaction.user_names import OWNERS, Owner


def token_id(row: Token) -> str:
    return f"{row.family}-{row.gate}"


@table("row", TOKENS, ids=token_id)
@table(
    "around",
    ["{}", "use {} now", '{{"a": "{}"}}', "one\\n{}", "a=%20{}", "\x1b[32m{}\x1b[0m", "({})"],
)
def test_a_token_goes_wherever_it_stands(row, around):
    text = around.format(row.example)
    redacted = without_tokens(text, Placeholders())
    assert f"<{row.family}:1>" in redacted
    assert row.example not in redacted


CUT = [
    *("sk-ant-", "sk-", "hf_", "gsk_", "ghp_", "github_pat_", "gl", "AIza", "ya29.", "GOCSPX-"),
    *("npm_", "pypi-", "xox", "xapp-", "_live_", "whsec_", "SG.", "eyJ", "dckr_", "lin_"),
]


@table("row", [row for row in TOKENS if row.gate in CUT], ids=token_id)
def test_a_token_that_was_cut_goes_too(row):
    """Results are kept by their head and tail, so a token can lose its end."""
    cut = row.example[: max(24, row.example.find(".") + 6)]
    assert cut not in Redactor().text(f"… then {cut}")


@table("row", LOGINS, ids=lambda row: row.id)
def test_a_login_goes(row: Login):
    redacted = Redactor().text(row.example)
    assert f"<{row.family}:1>" in redacted
    assert "hunter2" not in redacted


@table("row", PAIRS, ids=lambda row: row.id)
def test_a_value_of_a_pair_goes(row: Pair):
    redacted = Redactor().text(row.example)
    assert ":1>" in redacted
    assert "hunter2" not in redacted.lower()


@table("row", OWNERS, ids=lambda row: row.id)
def test_an_owner_goes(row: Owner):
    redacted = Redactor().text(row.example)
    assert "<user:1>" in redacted
    assert "alice" not in redacted


@table(
    "text",
    [
        "npm_config_registry npm_lifecycle_event npm_package_version",
        "hf_hub_download(repo_id) and hf_transfer",
        "disk-usage task-runner-production-eu ask-questions-first",
        "sk-learn-contrib-imbalanced",
        "import pypi-server; pypi-publish-action",
        "AKIAble ASIAN ACCOUNT SKILLS",
        "SG.example.com is a host",
        "key-value-store key-0 pat-eu",
        "glob-parent glsl_shader_source",
        "v1.0-alpha do_v1_migration",
        "re_compile_pattern re_match_object",
        "secret_name secret_key_base_is_missing_here",
        "12:AM 10:AB",
        "fw_update_notification_handler",
    ],
)
def test_words_that_begin_like_tokens_stay(text):
    assert without_tokens(text, Placeholders()) == text
