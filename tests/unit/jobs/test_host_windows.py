"""The context window of the model that a host would use, as far as its settings tell."""

from pathlib import Path

import pytest
from tests.tables import table

from journeyman.hosts.pages import PAGES
from journeyman.hosts.runner import RunRequest
from journeyman.records.host import Host

OPENCODE = '{"model": "own/m1", "provider": {"own": {"models": {"m1": {"limit": {"context": 9}}}}}}'


@table(
    ("host", "settings", "model", "window"),
    [
        ("claude-code", None, "", 200_000),
        ("claude-code", None, "opus", 200_000),
        ("claude-code", None, "sonnet[1m]", 1_000_000),
        ("claude-code", None, "gpt-4", 8_192),
        ("claude-code", None, "of-our-own", None),
        ("claude-code", (".claude/settings.json", '{"model": "gpt-4"}'), "", 8_192),
        ("claude-code", ("work/.claude/settings.json", '{"model": "gpt-4"}'), "", 8_192),
        ("claude-code", (".claude/settings.json", "{broken"), "", 200_000),
        ("codex", None, "", 272_000),
        ("codex", (".codex/config.toml", 'model = "gpt-4"'), "", 8_192),
        ("codex", (".codex/config.toml", 'model_provider = "own"'), "", None),
        ("codex", (".codex/config.toml", "model_context_window = 9"), "gpt-4", 9),
        (
            "codex",
            (".codex/config.toml", 'profile = "p"\n[profiles.p]\nmodel = "gpt-4"'),
            "",
            8_192,
        ),
        ("opencode", None, "", None),
        ("opencode", (".config/opencode/opencode.json", OPENCODE), "", 9),
        ("opencode", (".config/opencode/opencode.json", OPENCODE), "openai/gpt-4", 8_192),
        ("opencode", ("work/opencode.json", OPENCODE), "own/m1", 9),
        ("hermes", None, "", None),
        ("hermes", (".hermes/config.yaml", "model:\n  default: x\n  context_length: 9\n"), "", 9),
        ("hermes", (".hermes/config.yaml", "model: x\nother:\n  context_length: 9\n"), "", None),
    ],
)
def test_window(
    tmp_path_factory: pytest.TempPathFactory,
    host: Host,
    settings: tuple[str, str] | None,
    model: str,
    window: int | None,
) -> None:
    home = tmp_path_factory.mktemp("home")
    if settings is not None:
        path = home / settings[0]
        path.parent.mkdir(parents=True)
        path.write_text(settings[1])
    request = RunRequest(prompt="", folder=Path(home, "work"), model=model)
    assert PAGES[host].window(request, {"HOME": str(home)}) == window
