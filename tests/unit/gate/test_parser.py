"""Parsing a shell script into simple commands."""

from tests.tables import table

from journeyman.gate.command import OUTPUT, UNKNOWN
from journeyman.gate.parser import read_script


def words(text):
    return [command.words for command in read_script(text).commands if command.words]


@table(
    ("text", "expected"),
    [
        ("ls -l 'a b' \"c d\" e\\ f", [("ls", "-l", "a b", "c d", "e f")]),
        ("a && b | c; d", [("a",), ("b",), ("c",), ("d",)]),
        ("git -C \"$DIR\" log", [("git", "-C", UNKNOWN, "log")]),
        ("rm $HOME/x \"${PWD}\"/y", [("rm", "~/x", "./y")]),
        ("echo a$(b c)d", [("echo", f"a{OUTPUT}d"), ("b", "c")]),
        ("sudo -u root env A=1 timeout 5 ls", [
            ("sudo", "-u", "root", "env", "A=1", "timeout", "5", "ls"),
            ("env", "A=1", "timeout", "5", "ls"), ("timeout", "5", "ls"), ("ls",)]),
        ("find . -exec rm {} \\;", [("find", ".", "-exec", "rm", "{}", ";"), ("rm", "{}")]),
        ("bash -lc 'a; b'", [("bash", "-lc", "a; b"), ("a",), ("b",)]),
        ("python3 -m pip list", [("python3", "-m", "pip", "list"), ("pip", "list")]),
        ("command -v git", [("command", "-v", "git")]),
    ],
)  # fmt: skip
def test_words_of_simple_commands(text, expected):
    assert words(text) == expected


def test_variables_documents_and_redirects():
    script = read_script("A=1 cat <<'EOF' | B='x y' sort > out.txt\ntext\nEOF")
    first, last = (command for command in script.commands if command.words)
    assert (first.settings, first.document) == ((("A", "1"),), "text\n")
    assert (last.settings, last.upstream) == ((("B", "x y"),), {"cat"})
    (only,) = read_script("make 2>&1 >> out.txt").commands
    assert only.redirects == ((">&", "1"), (">>", "out.txt"))


@table(
    ("text", "notes", "code"),
    [
        ("$X now", ["command.hidden"], []),
        ("./$X", ["command.hidden"], []),
        ("$VENV/bin/pytest", [], []),
        ('eval "$(pyenv init -)"', [], []),
        ('eval "$(decode x)"', ["command.hidden"], []),
        ("curl x | python3 -", ["run.download"], []),
        ("curl x | python3 -c 'print(1)'", [], ["print(1)"]),
        ("node -e 'x()'", [], ["x()"]),
        ("python - <<'EOF'\nx()\nEOF", [], ["x()\n"]),
        ("(", ["unparseable"], []),
    ],
)
def test_notes_and_embedded_code(text, notes, code):
    script = read_script(text)
    assert (script.notes, script.code) == (notes, code)
