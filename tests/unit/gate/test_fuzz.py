"""The gate decides on any input and never raises."""

from hypothesis import example, given
from hypothesis import strategies as st
from tests.gate_cases import HOME, HOSTILE, REFUSED, WORKSPACE

from journeyman.gate.gate import Gate

GATE = Gate(WORKSPACE, home=HOME)
ANSWERS = {"allow", "ask", "refuse"}

PIECES = st.sampled_from(
    [
        *(
            "rm",
            "-rf",
            "/",
            "~",
            "git",
            "push",
            "echo",
            "bash",
            "-c",
            "cat",
            "find",
            "xargs",
            "sed",
        ),
        *("'", '"', "`", "$(", ")", "${", "}", "$X", "{a,b}", "\\", "\n", " ", "\t", ";", "&&"),
        *("||", "|", "&", ">", ">>", "<", "<<EOF", "EOF", "<<<", "(", "{", "if", "then", "fi"),
        *("for", "in", "do", "done", "while", "case", "esac", "function", "f()", "=", "A=", "+="),
        *(
            "$'",
            "\\x41",
            "[[",
            "]]",
            "((",
            "))",
            "!",
            "#",
            "*",
            "?",
            "[",
            "]",
            "é",
            "\u200b",
            "\x00",
        ),
        *(
            "-exec",
            "{}",
            "\\;",
            "::",
            ":",
            "..",
            "python",
            "-e",
            "%",
            "@",
            "$@",
            "$#",
            "$$",
            "2>&1",
        ),
    ]
)
SCRIPTS = st.lists(PIECES, max_size=25).map("".join)
SPACED = st.lists(PIECES, max_size=25).map(" ".join)
TRUNCATED = st.builds(
    lambda text, start, end: text[start : len(text) - end],
    st.sampled_from([command for _, command in HOSTILE]),
    st.integers(0, 10),
    st.integers(0, 10),
)


@given(st.one_of(st.text(), SCRIPTS, SPACED, TRUNCATED))
@example("\ud800")
@example("$'\\ud800'")
@example("rm $'\\x00'")
@example("cd \x00")
@example("echo ${")
@example("a <<EOF")
def test_any_command_gets_a_decision(text):
    assert GATE.decide("command", {"command": text}).answer in ANSWERS


@given(st.one_of(st.text(), TRUNCATED.map(lambda text: f"system({text!r})")))
@example("\x00")
@example("(" * 500)
@example("+".join(["'a'"] * 3000))
@example("a" + ".b" * 3000)
@example("x = x\nopen(x)")
@example("x = y\ny = x\nimport os\nos.system(x)")
@example("'\\ud800'.join([])\nopen('\\ud800')")
def test_any_code_gets_a_decision(text):
    assert GATE.decide("code", {"code": text}).answer in ANSWERS


@given(st.text(), st.sampled_from(["read", "write", "search", "unknown"]))
@example("\ud800", "write")
@example("\x00", "write")
@example("a" * 5000, "write")
def test_any_path_gets_a_decision(text, risk):
    arguments = {"path": text, "patch": text, "content": text}
    assert GATE.decide(risk, arguments).answer in ANSWERS


@given(st.sampled_from([command for rule, command in HOSTILE if rule in REFUSED]), SPACED)
def test_appended_text_never_makes_a_refused_command_allowed(command, text):
    assert GATE.decide("command", {"command": f"{command}\n{text}"}).answer != "allow"
