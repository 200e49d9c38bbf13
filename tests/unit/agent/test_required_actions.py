"""Which tasks plainly need a tool call, and what becomes of a turn without one."""

from pathlib import Path

from tests.tables import table

from journeyman import Journeyman
from journeyman.agent.required_actions import needs_tools
from journeyman.testing import ScriptedModel, calls, says


@table(
    ("task", "needs"),
    [
        ("Sort the lines of lists/guests.txt and check the result.", True),
        ("Fix the failing test", True),
        ("please rename the folder", True),
        ("Look around, then delete what is old.", True),
        ("What does /etc/hostname contain?", True),
        ("Summarise ./notes", True),
        ("What is in ~/notes, and in /var/log?", True),
        ("Explain how to test Go code. Then run the tests.", True),
        ("Explain src/node.js", True),
        ("Say hello.", False),
        ("Tell me about node.js", False),
        ("Compare A/B testing and /r/python", False),
        ("What does the /help command do?", False),
        ("How do I create a branch, and delete it again?", False),
        ("Explain how to build, install and run Go programs.", False),
        ("What is the capital of France?", False),
        ("Write a poem about and/or gates.", False),
        ("Which disk is nearly full? Answer in one sentence.", False),
        ("Is version 2.10 newer than 2.9?", False),
    ],
)
def test_tasks(task: str, needs: bool) -> None:
    assert needs_tools(task) is needs


def test_the_embedded_model_has_done_nothing_without_a_call(tmp_path: Path) -> None:
    look = ("terminal", {"command": "true"})
    cases = (
        ("embedded", "Create notes.md", [says("It is created.")], "nothing_done"),
        ("embedded", "Say hello.", [says("Hello.")], "done"),
        ("embedded", "Create notes.md", [calls(look), says("It is created.")], "done"),
        ("api.example", "Create notes.md", [says("Which notes?")], "done"),
    )
    (tmp_path / "work").mkdir()
    with Journeyman(home=tmp_path / "home", environ={"HOME": str(tmp_path)}) as journeyman:
        for provider, task, replies, stop in cases:
            model = ScriptedModel(replies, provider=provider)
            turn = journeyman.run(task, model=model, workspace=tmp_path / "work", warm="off")
            assert (turn.stop, turn.completed) == (stop, stop == "done"), task
            if stop == "nothing_done":
                assert "nothing was read or changed" in turn.note
                assert turn.final_response == "It is created."
                assert journeyman.sessions.get(turn.session).session.end_reason == "error"
