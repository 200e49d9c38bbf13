"""Shell command lines: pipelines, commands with their operators, and hostile text."""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.text.shell import LONGEST_COMMAND, commands, parse, pipelines


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
    ("line", "found"),
    [
        ("a && make 2>&1 | tee log", [("a", "&"), ("make", "|"), ("tee log", "")]),
        ("cat <<END\ngrep x\nEND\nb", [("cat", ";"), ("b", "")]),
        ("cat <<END | sort\nb\na\nEND", [("cat", "|"), ("sort", "")]),
        ("(cd src && diff a b) || true  # c", [("cd src", "&"), ("diff a b", ")/"), ("true", "")]),
        ("! grep x log > out; x=$(a | b)", [("grep x log", ";"), ("x=$(a | b)", "")]),
        ("a & b\nif c; then d; fi", [("a", "b"), ("b", ";"), ("c", ";;"), ("d", ";)")]),
        ("x" * (LONGEST_COMMAND + 1), []),
    ],
)
def test_commands(line: str, found: list[tuple[str, str]]) -> None:
    assert commands(line) == found


@given(st.text(max_size=200))
def test_any_text_is_parsed(text: str) -> None:
    pipelines(text)
    commands(text)


def test_characters_that_crash_the_scanner() -> None:
    """In a process of its own: the scanner of the grammar would end it."""
    program = (
        "from journeyman.text.shell import parse\nparse('a{\\U0010dc16}'); parse('{\\U000f0000')"
    )
    for _ in range(5):
        subprocess.run([sys.executable, "-c", program], check=True)


def test_the_tree_keeps_the_text() -> None:
    assert parse("echo é").named_children[0].text == "echo é".encode()
