"""Names and normalised forms of the commands in a shell line, and the skill that a call shows."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table
from tests.turns import agent, call, patterns, user
from tests.waiting import assert_linear

from journeyman.learning.commands import commands_of, is_plain, skill_of


def names(line):
    return [command.name for command in commands_of(line)]


def forms(line):
    return [command.form for command in commands_of(line)]


@table(
    ("line", "expected"),
    [
        ("git log --oneline | head -5", ["git log"]),
        ("cd app && npm run build", ["npm run build"]),
        ("npm test || npm run lint; make", ["npm test", "npm run lint", "make"]),
        ("pytest && pytest -x", ["pytest"]),
        ("git -C /srv/app log", ["git log"]),
        ("git -C app log", ["git log"]),
        ("git --no-pager diff", ["git diff"]),
        ("npm --prefix web run build", ["npm run build"]),
        ("python -m pytest -q", ["python -m pytest"]),
        ("python3 -m http.server 80", ["python -m http.server"]),
        ("python -m", ["python"]),
        ('python -m "a b"', ["python"]),
        ("python tools/make_all.py --fast", ["python tools/make_all.py"]),
        ("python3 tools/make_all.py", ["python tools/make_all.py"]),
        ("python -c 'import a.b'", ["python"]),
        ("./script.sh", ["./script.sh"]),
        ("bin/test -q && ./bin/test", ["bin/test"]),
        ("test -f x", ["test"]),
        ("./gradlew build", ["./gradlew build"]),
        ("/usr/local/bin/ruff check .", ["ruff check"]),
        ("docker compose up -d", ["docker compose up"]),
        ("gh pr view 12", ["gh pr view"]),
        ("git checkout 1a2b3c4d5e", ["git checkout"]),
        ("A=1 B='x y' make test", ["make test"]),
        ("env A=1 make test", ["make test"]),
        ("timeout 60 pytest", ["pytest"]),
        ("timeout -k 5 2m npm test", ["npm test"]),
        ("nice -n 10 make", ["make"]),
        ("for f in *.py; do ruff check $f; done", ["ruff check"]),
        ("while read f; do wc -l $f; done < list", ["wc"]),
        ("if [ -f a ]; then make; else cargo build; fi", ["make", "cargo build"]),
        ("version=$(git describe --tags)", ["git describe"]),
        ("(cd app; make)", ["make"]),
        ("make \\\n  test", ["make test"]),
        ("cd app\nmake lint\n\nmake test\n", ["make lint", "make test"]),
        ("cat > a.py <<'EOF'\nimport os\nrm -r x\nEOF\nruff check a.py", ["cat", "ruff check"]),
        ("git commit -F - <<MSG\nmake it work\nMSG", ["git commit"]),
        ("cat > a.py <<EOF\n" + "make everything\n" * 2_000 + "EOF\n", ["cat"]),
        ('git commit -m "make it; rm all"', ["git commit"]),
        ('git commit -m "$(echo "one two three four")" && make', ["git commit", "make"]),
        ("'git' status", ["git status"]),
        ("grep 'never closed && make", ["grep"]),
        ("cmd --password hunter2 run", ["cmd run"]),
        ("echo done; cd ..; export A=1", []),
        ("", []),
        ("   \n\t", []),
        ("| && ;; > <", []),
        ("# a comment", []),
    ],
)
def test_names(line, expected):
    assert names(line) == expected


@table(
    ("line", "expected"),
    [
        ("git log --oneline | head -5", ["git log --oneline | head -5"]),
        ("pytest -q 2>&1", ["pytest -q"]),
        ("pytest -q 2>&1 | tail -3", ["pytest -q 2>&1 | tail -3"]),
        ("git commit -m 'x y' --no-verify", ["git commit -m … --no-verify"]),
        ("git commit --message='x y'", ["git commit --message=…"]),
        ("git commit -am'x y'", ["git commit …"]),
        (r"git commit -m x\ y", ["git commit -m …"]),
        ("ruff check $FILES src", ["ruff check … src"]),
        ("git show 1a2b3c4d5e", ["git show …"]),
        ("cp /tmp/one /tmp/two lib", ["cp … lib"]),
        ("curl -s https://example.org/a", ["curl -s …"]),
        ("cat > a <<EOF\nbody\nEOF", ["cat > a <<…"]),
        ("tool --token abc --api-key=def go", ["tool --token … --api-key=… go"]),
        ("'/srv/my tools/git' status", ["git status"]),
        ('"bin/test" -q', ["bin/test -q"]),
        ("make all make one two three", ["make all …"]),
    ],
)
def test_forms(line, expected):
    assert forms(line) == expected


def test_long_form_is_truncated():
    assert len(forms("make " + "target " * 200)[0]) <= 160


_programs = st.sampled_from(["git commit -m", "gh pr create --body", "curl -d", "python -c", "x"])
_values = st.text(st.characters(exclude_characters="'\"\\$`", exclude_categories=("Cs",)))


@given(_programs, _values, st.sampled_from("'\""))
def test_quoted_text_is_in_no_name_or_form(program, value, quote):
    marked = f"zebra {value} zebra"
    for line in (
        f"{program} {quote}{marked}{quote} -v",
        f"{program} --text={quote}{marked}{quote}",
    ):
        for one in commands_of(line):
            assert "zebra" not in one.name + one.form


_shell_text = st.lists(
    st.sampled_from([*"'\"\\$()`|&;<>{}[]=-\n ", "<<EOF\n", "EOF", "$(", "git", "-m", "…", "a/b"])
    | st.text(max_size=5)
).map("".join)


@given(st.text() | _shell_text)
def test_any_text_is_read(line):
    for one in commands_of(line):
        assert one.name
        assert 0 < len(one.form) <= 160
        assert "\n" not in one.name + one.form
        assert not set("'\"") & set(one.name + one.form)


@table(
    "piece",
    [
        *("a", " ", "'", '"', "\\", "\n", '"$(', "<<a\n", "<<A x", "$(", "`", "|", "a=1 ", "2>"),
        *("git push ", "git -C ", "curl ", "docker ", "rm -a ", "rm ", "chmod -R ", "drop "),
    ],
)
def test_a_long_line_takes_linear_time(piece):
    assert_linear(lambda size: commands_of((piece * size)[:size]), 1_000)
    commands_of(piece * (1_000_000 // len(piece)))


@table(
    ("line", "plain"),
    [
        ("bin/test -q tests/a.py::test_tax", True),
        ("npm run build -- --watch", True),
        ('grep -rn "SYSTEM_PROMPT" src', True),
        ("bin/check agents: start the upload", False),
        ("bin/check && echo always start bin/sync first", False),
        ("bin/check # start it first", False),
        ("bin/note <<EOF\nstart it\nEOF", False),
        ("bin/check 请先运行测试", False),
        ("make check NOTE=erst-den-abgleich-dann-alles-hochladen", False),
        ("uv run --index-url x.example pytest", False),
    ],
)
def test_commands_that_may_be_examples(line, plain):
    assert is_plain(line) is plain


@table(
    ("line", "form"),
    [
        ("docker run registry.example/team/tool x", "docker run … x"),
        ("bin/sync ana@host.example:/srv", "bin/sync …"),
        ("bin/test tests/a.py::test_tax", "bin/test tests/a.py::test_tax"),
    ],
)
def test_places_on_the_network_are_left_out(line, form):
    assert [one.form for one in commands_of(line)] == [form]


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
