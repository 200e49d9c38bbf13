"""Episodes as examples, and their calls as text."""

import json

from hypothesis import given
from hypothesis import strategies as st

from journeyman.experience.opening import episode_pattern
from journeyman.learning.search_keys import call_text
from journeyman.records import CommandUse, Episode, FileUse, Observations, SessionId, Step


def step(tool, **arguments):
    return Step(tool=tool, arguments=json.dumps(arguments))


def episode(**fields):
    request = {"number": 2, "request": "Fix the parser", "ending": "well"}
    return Episode(session=SessionId("s1"), **{**request, **fields})


def test_example_has_the_fields_of_its_episode():
    steps = (step("Bash", command="make test"), step("get", id=1))
    found = episode_pattern(episode(steps=steps, at=7.0, source="codex"))
    assert (found.id, found.intent) == ("s1#2", "Fix the parser")
    assert (found.steps, found.source, found.tokens) == (steps, "codex", 0)
    assert (found.sessions, found.at) == (("s1",), 7.0)


def test_call_text_of_an_episode():
    found = call_text(
        episode(
            observed=Observations(
                commands=(
                    CommandUse("make test", "make test", 1, 0),
                    CommandUse("make lint", "make lint", 0, 1),
                ),
                files=(FileUse("src/parser.py", 1, 0),),
            ),
            steps=(step("Bash", command="make test"), step("find_user", user_id=3)),
        )
    )
    assert found == "make test. find user user id. parser.py"
    assert call_text(episode()) == ""


@given(st.sampled_from(["Bash", "Read", "Edit", "get", "apply_patch"]), st.text())
def test_any_arguments_give_a_text(tool, text):
    for arguments in (text, json.dumps({"command": text, "file_path": text, "x": text})):
        call = Step(tool=tool, arguments=arguments)
        assert isinstance(call_text(episode(steps=(call,))), str)
