"""Pattern ids: which work counts as the same."""

import json

from tests.tables import table

from journeyman.learning.sanitizer import masked_text, pattern_id
from journeyman.records import Step


def make_id(intent="Cancel reservation EHGLP3", kind="first_try", tool="cancel", **arguments):
    return pattern_id(kind, intent, [Step(tool=tool, arguments=json.dumps(arguments))])


@table(
    ("one", "other"),
    [
        ("Cancel reservation EHGLP3", "cancel reservation NM1VX1!"),
        ("My id is mia_li_3668.", "My id is noah_brown_6181"),
        ("Write to <email:1>", "Write to <email:2>"),
        ("On 2024-05-20 at 07:30", "On 2023-11-01 at 18:00"),
        ("a@b.example needs it", "<email:1> needs it"),
    ],
)
def test_values_are_masked(one, other):
    assert masked_text(one) == masked_text(other)


@table(("one", "other"), [("Cancel the flight", "Book the flight"), ("read it", "write it")])
def test_words_are_not_masked(one, other):
    assert masked_text(one) != masked_text(other)


def test_ids_of_similar_work():
    # Values do not matter.
    assert make_id(id="EHGLP3", seats=2) == make_id(
        "Cancel reservation NM1VX1", id="NM1VX1", seats=3
    )
    assert make_id(path="/srv/app/main.py") == make_id(path="lib/other.ts")

    # Key order and number of items do not matter.
    assert make_id(a="x", b="y") == make_id(b="y", a="x")
    people = [{"name": "Ann", "age": 4}, {"name": "Ann", "age": 5}]
    assert make_id(people=people) == make_id(people=people[:1])

    # Flags matter.
    assert make_id(force=True) != make_id(force=False)

    # Failed and successful steps differ.
    steps = [Step(tool="a"), Step(tool="a", worked=False)]
    assert pattern_id("recovery", "x", steps) != pattern_id("recovery", "x", steps[::-1])

    # Malformed arguments get an id too.
    assert pattern_id("final", "x", [Step(tool="a", arguments="{not json")])

    # The id is the same on every machine.
    assert make_id(id="x") == "90f68249538f8f4ae475"


def test_request_affects_only_the_id_of_a_sequence():
    assert make_id("Cancel it", id="x") == make_id("Book a seat", id="x")
    assert make_id(id="x") == make_id(kind="final", id="x")
    assert make_id("Cancel it", "sequence", id="x") != make_id("Book a seat", "sequence", id="x")
    assert make_id(kind="sequence", id="x") != make_id(id="x")


def shell_id(command):
    return make_id(tool="Bash", command=command)


def test_shell_commands_are_compared_by_name_and_form():
    # Quoted text, working directory and description do not matter.
    assert shell_id("git commit -m 'one'") == shell_id('cd app && git commit -m "two words"')
    assert shell_id("pytest -q") == make_id(
        tool="Bash", command="pytest -q", description="Run tests"
    )

    # The program, its subcommand and its options do.
    assert (
        len({shell_id(one) for one in ("git pull", "git push", "git push -q", "gh pr list")}) == 4
    )


def test_files_that_are_read_are_compared_by_name():
    one = {"file_path": "/home/ada/app/src/a.py", "offset": 3}
    assert make_id(tool="Read", **one) == make_id(tool="Read", file_path="/srv/app-2/src/a.py")
    assert make_id(tool="Read", **one) != make_id(tool="Read", file_path="/srv/app-2/src/b.py")
    assert make_id(tool="Edit", file_path="a.py", old_string="total", new_string="sum") != make_id(
        tool="Edit", file_path="a.py", old_string="walk", new_string="run"
    )


@table(
    "other",
    [
        make_id(tool="drop", id="walk"),
        make_id(id="x", force=True),
        make_id(id="run"),
        make_id(id=["x"]),
    ],
)
def test_different_work_has_a_different_id(other):
    assert other != make_id(id="walk")


@table("depth", [50, 900])
def test_deeply_nested_arguments_get_an_id(depth):
    deep = "[" * depth + "1" + "]" * depth
    arguments = f'{{"a": {deep}}}'
    assert pattern_id("final", "x", [Step(tool="a", arguments=arguments)])
