"""What other programs load when they start Journeyman: by an import, and as an MCP server."""

import subprocess
import sys
from pathlib import Path

from tests.mcp_lines import connected
from tests.program import Command

PROGRAM = str(Path(sys.executable).with_name("journeyman"))
HEAVY = {"alembic", "jsonschema", "litestar", "numpy", "openai", "rich", "scipy", "sqlalchemy"}


def loaded_by(statement: str) -> set[str]:
    """The top-level packages that a statement loads in a new interpreter."""
    shown = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}; {shown}"], capture_output=True, text=True, check=True
    )
    return {*done.stdout.split()}


def test_the_tool_warm_session_is_imported_without_numpy() -> None:
    for statement in (
        "import journeyman.warm_session",
        "from journeyman.warm_session import SCHEMA, warm_session",
        "import journeyman.mcp.tools",
    ):
        assert not HEAVY & loaded_by(statement), statement


def test_the_mcp_server_answers_without_them(tmp_path: Path) -> None:
    """Clients wait for it at every start; benchmarks/help_speed.py has the figures."""
    environ = Command(tmp_path).environ | {"PYTHONPROFILEIMPORTTIME": "1"}
    with (tmp_path / "imports").open("w+") as imports:
        with connected([PROGRAM], environ, tmp_path, errors=imports) as client:
            assert client.about["serverInfo"]["name"] == "journeyman"
        imports.seek(0)
        loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in imports}
    assert "mcp" in loaded
    assert not HEAVY & loaded
