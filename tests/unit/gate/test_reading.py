"""What the reader makes of a script: the words of every command, as a shell would see them."""

import shutil
import subprocess

import pytest
from tests.gate_cases import HOME, WORKSPACE
from tests.tables import table

from journeyman.gate.places import Places
from journeyman.gate.reader import Reader
from journeyman.gate.words import OUTPUT, UNKNOWN


def commands(script):
    reader = Reader(Places(WORKSPACE, HOME))
    reader.read(script)
    return [[word.text for word in one.words] for one in reader.findings.commands if one.words]


@table(
    ("script", "words"),
    [
        ("a b  c", ["a", "b", "c"]),
        ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
        ("a '' \"\"", ["a", "", ""]),
        ("a b''c\\d", ["a", "bcd"]),
        ("a \\\n b", ["a", "b"]),
        ("a b\\\nc", ["a", "bc"]),
        ("a \\ b", ["a", " b"]),
        ("a $'x\\ty\\x41'", ["a", "x\tyA"]),
        ('a $"b"', ["a", "b"]),
        ('a "\\$X \\"q\\""', ["a", '$X "q"']),
        ("a {b,c}{1..2}", ["a", "b" + UNKNOWN, "c" + UNKNOWN]),
        ("a {b,c}d '{e,f}'", ["a", "bd", "cd", "{e,f}"]),
        ("a {a..c}", ["a", "a", "b", "c"]),
        ("a $X", ["a", UNKNOWN]),
        ("a $(date)", ["a", OUTPUT]),
        ("a ~/x", ["a", f"{HOME}/x"]),
        ("a # b", ["a"]),
        ('a "b`c`"', ["a", f"b{OUTPUT}"]),
    ],
)
def test_words(script, words):
    assert commands(script)[-1] == words


@table(
    ("script", "words"),
    [
        ("X=b; a $X", ["a", "b"]),
        ("X='b c'; a $X \"$X\"", ["a", "b", "c", "b c"]),
        ("X=(b 'c d'); a \"${X[@]}\"", ["a", "b", "c d"]),
        ("X=b; X+=c; a $X", ["a", "bc"]),
        ("X=a.txt; a ${X%.txt} ${X#a.} ${X##*.}", ["a", "a", "txt", "txt"]),
        ("a ${X:-b}", ["a", "b"]),
        ("X=b && a $X", ["a", "b"]),
        ("true || X=b; a $X", ["a", UNKNOWN]),
        ("if x; then X=b; fi; a $X", ["a", UNKNOWN]),
        ("(X=b); a $X", ["a", UNKNOWN]),
        ("X=b; read X; a $X", ["a", UNKNOWN]),
        ("export X=b; a $X", ["a", "b"]),
        ('set -- b c; a "$@" $2', ["a", "b", "c", "c"]),
        ('f() { a "$1"; }; f b', ["a", "b"]),
        ("X=$(echo b); a $X", ["a", "b"]),
        ("X=$(printf '%s-%s' b c); a $X", ["a", "b-c"]),
        ("IFS=,; X=b,c; a $X", ["a", UNKNOWN]),
    ],
)
def test_variables(script, words):
    assert words in commands(script)


def test_a_loop_is_followed_word_by_word():
    assert commands("for x in b 'c d'; do a \"$x\"; done") == [["a", "b"], ["a", "c d"]]


def test_everything_nested_is_found():
    script = """
    a1 | a2 && a3 || a4 &
    if a5; then a6; elif a7; then a8; else a9; fi
    while a10; do a11; done < <(a12)
    case "$(a13)" in x) a14;; esac
    f() { a15; }
    cat <<EOF
    $(a16)
    EOF
    [[ -n "$(a17)" ]]; (( $(a18) ))
    X=$(a19) a20 "${Y:-$(a21)}" > "$(a22)"
    """
    found = {one[0] for one in commands(script)}
    assert {f"a{number}" for number in range(1, 23)} <= found


@table(
    "script",
    [
        "sudo -u x a b",
        "env -i X=1 a b",
        "nice -n 5 a b",
        "timeout -k 1 5 a b",
        "xargs -n 1 a b",
        "find . -exec a b \\;",
        "bash -c 'a b'",
        "bash <<< 'a b'",
        "echo a b | sh",
        "eval a b",
        "trap 'a b' EXIT",
        "alias z='a b'; z",
        "watch -n 1 a b",
        "parallel a ::: b",
        "git rebase --exec 'a b' HEAD~2",
        "git bisect run a b",
        "uv run a b",
        "npm exec -- a b",
        "docker exec -it box a b",
        "tar xf x --to-command='a b'",
        "echo a b > run.sh; sh run.sh",
        "cat > run.sh <<'EOF'\na b\nEOF\n./run.sh",
        "! { a b; }",
        "time a b",
    ],
)
def test_what_a_command_carries_inside(script):
    assert any(one[:2] == ["a", "b"] for one in commands(script))


# Nothing here runs anything but printf and echo.
FRAGMENTS = [
    *("r\\m", "r''m", 'r""m', "$'\\x72'm", '$"r"m', "r\\\nm", "r`echo m`", "r$(echo m)"),
    *("$X", '"$X"', "${X}y", '"${X}y"', "x$X", "'$X'", '"\\$X"', "\\$X", "$X$X", '"$X"$X'),
    *("${A[@]}", '"${A[@]}"', "${A[1]}", '"$@"', "$1", '"$2"', '.."$X"$1', "$1x$2"),
    *("{a,b}", "x{a,b}y", "{a,b}{c,d}", "{a}", "a,b", "'{a,b}'", '{a,"b c"}', "{a..c}"),
    *("\\ a", "a\\ b", "a\\\tb", "'a b'c", "a  b", "a\tb", '"a  b"', "''", '""', "a''"),
    *("$(echo a b)", '"$(echo a b)"', "`echo a b`", '"`echo a b`"', "$(echo 'a b')"),
    *("${N:-d e}", '"${N:-d e}"', "${X%q}", "${X#p}", "${X%% *}", "x#y", "a=b", "\\#a"),
    *('"a\\"b"', "'a\"b'", '"a\'b"', "'\\'", '"\\\\"', "\\\\", "é'ü'\"ö\"", "%s", "!", "a\\\n b"),
]
SETTING = "X='p q'; A=(k 'l m'); set -- o 'r s'; "


@pytest.mark.skipif(shutil.which("bash") is None, reason="compares with bash, which is not here")
def test_words_are_what_a_real_shell_makes_of_them():
    lines = [f"printf '%s\\0' args {fragment}; printf '\\1'\n" for fragment in FRAGMENTS]
    done = subprocess.run(
        ["bash", "--norc", "-c", SETTING + "".join(lines)], capture_output=True, check=True
    )
    real = [one.split("\0")[1:-1] for one in done.stdout.decode().split("\1")[:-1]]
    ours = [
        next(one[1:] for one in commands(f"{SETTING} args {fragment}") if one[0] == "args")
        for fragment in FRAGMENTS
    ]
    differing = {
        fragment: (a, b)
        for fragment, a, b in zip(FRAGMENTS, real, ours, strict=True)
        if a != b and not any(UNKNOWN in word or OUTPUT in word for word in b)
    }
    assert differing == {}
