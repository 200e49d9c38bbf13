"""When two patterns are the same."""

import json

from tests.tables import table

from journeyman.records import Step
from journeyman.templates.cleaning import masked, pattern_id


def made(intent="Cancel reservation EHGLP3", kind="first_try", tool="cancel", **arguments):
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
def test_particular_values_are_masked(one, other):
    assert masked(one) == masked(other)


@table(("one", "other"), [("Cancel the flight", "Book the flight"), ("read it", "write it")])
def test_words_are_not(one, other):
    assert masked(one) != masked(other)


def test_what_makes_the_same_work():
    # Other values are the same work.
    assert made(id="EHGLP3", seats=2) == made("Cancel reservation NM1VX1", id="NM1VX1", seats=3)
    assert made(path="/srv/app/main.py") == made(path="lib/other.ts")

    # Order of keys and number of items do not matter.
    assert made(a="x", b="y") == made(b="y", a="x")
    people = [{"name": "Ann", "age": 4}, {"name": "Ann", "age": 5}]
    assert made(people=people) == made(people=people[:1])

    # Flags are words and not values.
    assert made(force=True) != made(force=False)

    # A step that failed is another step.
    steps = [Step(tool="a"), Step(tool="a", worked=False)]
    assert pattern_id("recovery", "x", steps) != pattern_id("recovery", "x", steps[::-1])

    # Malformed arguments have an id too.
    assert pattern_id("final", "x", [Step(tool="a", arguments="{not json")])

    # The id is the same on every machine.
    assert made(id="x") == "90f68249538f8f4ae475"


def test_the_request_belongs_to_the_id_of_a_sequence_only():
    assert made("Cancel it", id="x") == made("Book a seat", id="x")
    assert made(id="x") == made(kind="final", id="x")
    assert made("Cancel it", "sequence", id="x") != made("Book a seat", "sequence", id="x")
    assert made(kind="sequence", id="x") != made(id="x")


def shell(command):
    return made(tool="Bash", command=command)


def test_shell_commands_go_by_names_and_forms():
    # What is quoted, where it runs and what it is said to be for do not matter.
    assert shell("git commit -m 'one'") == shell('cd app && git commit -m "two words"')
    assert shell("pytest -q") == made(tool="Bash", command="pytest -q", description="Run tests")

    # The program, its subcommand and its options do.
    assert len({shell(one) for one in ("git pull", "git push", "git push -q", "gh pr list")}) == 4


def test_a_file_that_is_read_goes_by_its_name():
    one = {"file_path": "/home/ada/app/src/a.py", "offset": 3}
    assert made(tool="Read", **one) == made(tool="Read", file_path="/srv/app-2/src/a.py")
    assert made(tool="Read", **one) != made(tool="Read", file_path="/srv/app-2/src/b.py")
    assert made(tool="Edit", file_path="a.py", old_string="total", new_string="sum") != made(
        tool="Edit", file_path="a.py", old_string="walk", new_string="run"
    )


@table(
    "other",
    [
        made(tool="drop", id="walk"),
        made(id="x", force=True),
        made(id="run"),
        made(id=["x"]),
    ],
)
def test_other_work_has_another_id(other):
    assert other != made(id="walk")


@table("depth", [50, 900])
def test_deep_nesting_is_no_trouble(depth):
    deep = "[" * depth + "1" + "]" * depth
    arguments = f'{{"a": {deep}}}'
    assert pattern_id("final", "x", [Step(tool="a", arguments=arguments)])
