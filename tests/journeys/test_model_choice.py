"""`run`, `review` and jobs without a configured model: the error says what to set, and the embedded
model is never used silently.
"""

import sys
from pathlib import Path

from tests.program import Command

WITH = ("--with", "journeyman")


def test_it_says_which_settings_to_set(tmp_path: Path) -> None:
    command = Command(tmp_path)
    own = ("run", "Say hello.", *WITH)
    for arguments in (own, (*own, "--model", "gpt-5-mini")):
        told = " ".join(command(*arguments, code=2).stderr.split())
        assert "journeyman config set model.base_url http://127.0.0.1:11434/v1" in told
        assert "journeyman config set model.name" in told
        assert "`run --with HOST` needs neither" in told
        assert "--model embedded" in told


def test_a_job_without_an_agent_or_a_model(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command.environ["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    said = command("jobs", "add", "every day 09:00", "Say hello.", code=2).stderr
    assert "npm install -g @anthropic-ai/claude-code" in said
    assert command.json("jobs", "list")["jobs"] == []
    command("jobs", "add", "every day 09:00", "Say hello.", "--name", "greeting", *WITH)
    row = command.json("jobs", "run", "greeting", code=1)
    assert row["status"] == "blocked"
    assert "No model is configured" in row["reason"]
