"""How quickly other programs can start Journeyman: what an import loads, and the processor time of
the MCP server until it has answered.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.mcp_lines import connected
from tests.program import Command

PROGRAM = str(Path(sys.executable).with_name("journeyman"))
MOST_CPU_S = 0.7
TRIES = 3


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
        assert not {"numpy", "scipy", "sqlalchemy"} & loaded_by(statement), statement


def test_the_mcp_server_answers_within_its_processor_time(tmp_path: Path) -> None:
    """Clients wait for it at every start. The quickest of a few starts counts, because other
    programs on the machine can only make it slower.
    """
    used = []
    for _ in range(TRIES):
        with connected([PROGRAM], Command(tmp_path).environ, tmp_path) as client:
            assert client.about["serverInfo"]["name"] == "journeyman"
            fields = Path(f"/proc/{client.pid}/stat").read_text().rpartition(")")[2].split()
        used.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    assert min(used) < MOST_CPU_S


def test_the_mcp_server_starts_and_ends_within_its_processor_time(tmp_path: Path) -> None:
    """The end counts too: a program that loaded much can take long to let go of it."""
    used = []
    for _ in range(TRIES):
        environ = Command(tmp_path).environ
        with subprocess.Popen(
            [PROGRAM, "mcp"], env=environ, cwd=tmp_path, stdin=subprocess.DEVNULL
        ) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        used.append(usage.ru_utime + usage.ru_stime)
    assert min(used) < MOST_CPU_S
