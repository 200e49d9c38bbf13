"""Every row of families.toml is a test case: this row must redact its example."""

from tests.canaries import sample
from tests.tables import table

from journeyman.redaction.families import Family, Pair, load_families
from journeyman.redaction.redactor import Redactor

FORMS = [row for row in load_families().family if not row.check and row.id != "private_key"]
PLACES = [row for row in load_families().family if row.check]


def row_id(row: Family) -> str:
    return f"{row.id}: {row.about}"


@table("row", FORMS, ids=row_id)
@table(
    "around",
    ["{}", "use {} now", '{{"a": "{}"}}', "one\\n{}", "a=%20{}", "\x1b[32m{}\x1b[0m", "({})"],
)
def test_a_token_is_redacted_anywhere(row, around):
    redacted = Redactor().text(around.format(sample(row)))
    assert ":1>" in redacted
    assert sample(row) not in redacted


CUT = [
    *("sk-ant-", "sk-proj-", "hf_", "gsk_", "ghp_", "github_pat_", "glpat-", "AIza", "ya29."),
    *("npm_", "pypi-", "xox", "xapp-", "_live_", "whsec_", "SG.", "eyJ", "dckr_", "lin_api_"),
]


@table("row", [row for row in FORMS if set(row.anchors) & set(CUT)], ids=row_id)
def test_a_truncated_token_is_redacted(row):
    """Results are stored as head and tail, so a token can lose its end."""
    cut = sample(row)[: max(28, sample(row).find(".") + 6)]
    assert cut not in Redactor().text(f"… then {cut}")


@table("row", PLACES, ids=row_id)
def test_a_secret_in_its_context_is_redacted(row: Family):
    redacted = Redactor().text(sample(row))
    assert ":1>" in redacted
    assert "hunter2" not in redacted


@table("row", load_families().pair, ids=lambda row: row.id)
def test_the_value_of_a_pair_is_redacted(row: Pair):
    redacted = Redactor().text(row.example)
    assert ":1>" in redacted
    assert "hunter2" not in redacted.lower()


@table("row", load_families().owner, ids=lambda row: row.id)
def test_a_user_name_is_redacted(row: Family):
    redacted = Redactor().text(sample(row))
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
def test_words_that_begin_like_tokens_are_unchanged(text):
    assert Redactor().text(text) == text
