"""The skill that a call demonstrates: its tool and, for shells, its command."""

import json

from tests.tables import table
from tests.turns import agent, call, patterns, user

from journeyman.learning.commands import skill_of


@table(
    ("tool", "command", "skill"),
    [
        ("bash", "cd /x && pytest -q | tail", "bash pytest"),
        ("Bash", "git commit -m x", "Bash git commit"),
        ("terminal", "FOO=1 python3 -m unittest x", "terminal python -m unittest"),
        ("shell", ["bash", "-lc", "ls -R"], "shell ls"),
        ("local_shell", "time sed -i s/a/b/ f", "local_shell sed"),
        ("Bash", "cat <<'EOF' > x\nfoo\nEOF", "Bash cat"),
        ("bash", "  cd a\n./run.sh", "bash ./run.sh"),
        ("bash", "cd a", "bash"),
        ("bash", "", "bash"),
        ("execute_code", "import os", "execute_code"),
        ("publish", "x", "publish"),
        ("get_order", "x", "get_order"),
    ],
)
def test_shell_calls_are_named_by_their_command(tool, command, skill):
    assert skill_of(tool, json.dumps({"command": command})) == skill


def test_skills_of_shell_sessions():
    # Malformed arguments.
    assert skill_of("bash", "{") == "bash"

    # In a session that uses only a shell, each program is a skill of its own.
    commands = ("ls", "cat a.py", "sed -i s/x/y/ a.py", "pytest -q", "git add -A")
    turns = [call("bash", {"command": command}) for command in commands]
    found = patterns(user("Fix the parser"), *turns, agent("Fixed."))
    assert [len(one.steps) for one in found] == [5]
