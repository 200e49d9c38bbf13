"""Episodes as examples, and their calls as text."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.records import CommandUse, Episode, FileUse, SessionId, Step
from journeyman.templates.examples import call_line, call_text, episode_pattern


def step(tool, **arguments):
    return Step(tool=tool, arguments=json.dumps(arguments))


def episode(**fields):
    request = {"number": 2, "request": "Fix the parser", "ending": "well"}
    return Episode(session=SessionId("s1"), **{**request, **fields})


def test_example_has_the_fields_of_its_episode():
    steps = (step("Bash", command="make test"), step("get", id=1))
    found = episode_pattern(
        episode(steps=steps, at=7.0, source="codex", tokens=12, quarantined="r")
    )
    assert (found.id, found.kind, found.intent) == ("s1#2", "sequence", "Fix the parser")
    assert (found.steps, found.source, found.tokens) == (steps, "codex", 12)
    assert (found.sessions, found.first_seen, found.last_seen) == (("s1",), 7.0, 7.0)
    assert found.quarantined == "r"


def test_call_text_of_an_episode():
    found = call_text(
        episode(
            commands=(
                CommandUse("make test", "make test", 1, 0, "Run the tests"),
                CommandUse("make lint", "make lint", 0, 1, "Never worked"),
            ),
            files=(FileUse("src/parser.py", 1, 0),),
            steps=(step("Bash", command="make test"), step("find_user", user_id=3)),
        )
    )
    assert found == "make test. Run the tests. find user user id. parser.py"
    assert call_text(episode()) == ""


@table(
    ("call", "line"),
    [
        (step("Bash", command="cd app && git commit -m 'x y' && make"), "git commit -m …; make"),
        (step("Read", file_path="/srv/app/src/a.py"), "Read a.py"),
        (step("get", id=1, by="day"), 'get(id=1, by="day")'),
        (step("get", text="x" * 100), "get(text=…)"),
        (step("get"), "get()"),
        (Step(tool="get", arguments="[1]"), "get()"),
        (Step(tool="get", arguments="{not json"), "get()"),
        (Step(tool="get", arguments="[" * 100_000), "get()"),
        (Step(tool="Bash", arguments='{"command": 3}'), "Bash(command=3)"),
        (step("Bash", command="echo hello"), 'Bash(command="echo hello")'),
    ],
)
def test_call_line(call, line):
    assert call_line(call) == line
    assert isinstance(call_text(episode(steps=(call,))), str)


@given(st.sampled_from(["Bash", "Read", "Edit", "get", "apply_patch"]), st.text())
def test_any_arguments_give_a_line(tool, text):
    for arguments in (text, json.dumps({"command": text, "file_path": text, "x": text})):
        assert call_line(Step(tool=tool, arguments=arguments))
