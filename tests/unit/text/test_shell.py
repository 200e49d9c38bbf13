"""Shell command lines: pipelines, the command that sets the exit code, and hostile text."""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.text.shell import LONGEST_COMMAND, deciding_command, parse, pipelines


@table(
    ("line", "words"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("cd src && make 2>&1 | tail -5", [["cd", "src"], ["make", "2>&1", "|", "tail", "-5"]]),
        ("cat <<'END' > out.txt\nls\nEND\nwc out.txt", [["cat", "<<…"], ["wc", "out.txt"]]),
        ("cat $(git ls-files) | wc", [["cat", "$(git ls-files)", "|", "wc"], ["git", "ls-files"]]),
        ('git commit -m "$(cat notes)"', [["git", "commit", "-m", '"$(cat notes)"']]),
        ("cat /home/<user:1>/a.txt", [["cat", "/home/<user:1>/a.txt"]]),
        ("{ ls; pwd; } 2>/dev/null", [["ls"], ["pwd"]]),
        ("for f in *; do wc $f; done", [["wc", "$f"]]),
        ("", []),
        ("x" * (LONGEST_COMMAND + 1), []),
    ],
)  # fmt: skip
def test_pipelines(line: str, words: list[list[str]]) -> None:
    assert pipelines(line) == words


@table(
    ("line", "deciding"),
    [
        ("make && grep -q x log", "grep -q x log"),
        ("make | tee log", "tee log"),
        ("cat <<END\ngrep x\nEND", "cat"),
        ("cat <<END | sort\nb\na\nEND", "sort"),
        ("(cd src && diff a b)", "diff a b"),
        ("diff a b  # compare", "diff a b"),
        ("diff a b > out", "diff a b"),
        ("! grep x log", "grep x log"),
        ("x" * (LONGEST_COMMAND + 1), ""),
    ],
)
def test_deciding_command(line: str, deciding: str) -> None:
    assert deciding_command(line).removeprefix("| ") == deciding


@given(st.text(max_size=200))
def test_any_text_is_parsed(text: str) -> None:
    pipelines(text)
    deciding_command(text)


def test_characters_that_crash_the_scanner() -> None:
    """In a process of its own: the scanner of the grammar would end it."""
    program = (
        "from journeyman.text.shell import parse\nparse('a{\\U0010dc16}'); parse('{\\U000f0000')"
    )
    for _ in range(5):
        subprocess.run([sys.executable, "-c", program], check=True)


def test_the_tree_keeps_the_text() -> None:
    assert parse("echo é").named_children[0].text == "echo é".encode()
