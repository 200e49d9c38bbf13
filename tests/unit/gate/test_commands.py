"""Commands and code that the gate must stop, and those it must let pass."""

from tests import gate_cases as cases
from tests.tables import table

from journeyman.gate.gate import Gate

GATE = Gate(cases.WORKSPACE, home=cases.HOME)


def decide(command):
    return GATE.decide("terminal", {"command": command})


@table(("command", "rule"), cases.REFUSED)
def test_what_is_never_run(command, rule):
    decision = decide(command)
    assert (decision.answer, decision.rule) == ("refuse", rule)


@table(("command", "rule"), cases.ASKED)
def test_what_is_asked_about(command, rule):
    decision = decide(command)
    assert (decision.answer, decision.rule) == ("ask", rule)
    assert decision.reason.endswith(".")


@table("command", cases.TRICKS)
def test_tricks(command):
    assert decide(command).answer != "allow"


@table("command", [*cases.HARMLESS, *cases.EVERYDAY])
def test_what_is_harmless(command):
    decision = decide(command)
    assert decision.answer == "allow", decision


@table(("code", "answer", "rule"), cases.CODE_STOPPED)
def test_code_that_is_stopped(code, answer, rule):
    decision = GATE.decide("execute_code", {"code": code})
    assert (decision.answer, decision.rule) == (answer, rule)


@table("code", cases.CODE_HARMLESS)
def test_code_that_is_harmless(code):
    decision = GATE.decide("execute_code", {"code": code})
    assert decision.answer == "allow", decision


@table(("code", "answer", "rule"), cases.CODE_STOPPED)
def test_the_same_code_given_to_an_interpreter(code, answer, rule):
    decision = decide(f"python3 - <<'EOF'\n{code}\nEOF")
    assert (decision.answer, decision.rule) == (answer, rule)


@table(
    "shape",
    [
        "{}",
        "true; {}",
        "false || {}",
        "({})",
        "if true; then {}; fi",
        "for i in 1 2; do {}; done",
        "f() {{ {}; }}; f",
        'echo "$({})"',
        "cat <({})",
        "bash -c '{}'",
        "echo '{}' | sh",
        "sh <<'EOF'\n{}\nEOF",
        "eval '{}'",
        "X='{}'; eval \"$X\"",
        "find . -exec bash -c '{}' \\;",
        "echo '{}' > run.sh && bash run.sh",
        "ls # a comment\n{}",
        "env A=1 nice timeout 5 bash -c '{}'",
        "python3 -c 'import os; os.system(\"{}\")'",
    ],
)
@table(
    ("command", "answer"),
    [("rm -rf /", "refuse"), ("git push --force", "ask"), ("cat .env", "ask"), ("ls -l", "allow")],
)
def test_a_command_is_the_same_wherever_it_stands(shape, command, answer):
    assert decide(shape.format(command)).answer == answer


@table(
    ("command", "rule"),
    [
        ("echo " + "x" * 20_000, "too_large"),
        ("( " * 30 + "ls" + " )" * 30, "too_deep"),
        ("echo " + "$(echo " * 40 + "x" + ")" * 40, "too_deep"),
        ("eval " * 30 + "ls", "too_deep"),
        ("env " * 30 + "ls", "too_deep"),
        ("env " * 4_000 + "ls", "too_large"),
        ("sudo " * 40 + "ls", "too_deep"),
        ("<<A " * 300, "too_large"),
        (" && ".join(["ls"] * 2_000), "too_deep"),
        ("; ".join(["ls"] * 4_000), "too_large"),
        ("a=xxxxxxxx;" + "a=$a$a;" * 60 + "$a", "unknown_program"),
        ("$(echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b})", "unknown_program"),
    ],
    ids=[
        "long",
        "brackets",
        "substitutions",
        "eval",
        "env",
        "words",
        "sudo",
        "documents",
        "list",
        "lines",
        "value",
        "braces",
    ],
)
def test_there_are_limits(command, rule):
    decision = decide(command)
    assert (decision.answer, decision.rule) == ("ask", rule) or decision.rule == "system.root"


def test_a_long_list_of_plain_commands_is_no_problem():
    assert decide(" && ".join(["ls"] * 200)).answer == "allow"


def test_where_a_command_runs_decides_what_it_deletes():
    inside = GATE.decide("terminal", {"command": "rm a.txt", "workdir": "src"})
    outside = GATE.decide("terminal", {"command": "rm a.txt", "workdir": "/etc"})
    root = GATE.decide("terminal", {"command": "rm -rf *", "workdir": "/"})
    assert inside.answer == "allow"
    assert outside.answer == "ask"
    assert root.answer == "refuse"
