"""When two patterns are the same."""

import json

from tests.tables import table

from journeyman.records import Step
from journeyman.templates.likeness import masked, pattern_id


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
    assert made(id="x") == "6f156211bb517b1f33b9"


@table(
    "other",
    [
        made("Book a seat"),
        made(kind="final"),
        made(tool="drop"),
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
