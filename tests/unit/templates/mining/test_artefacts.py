"""What programs leave behind and nobody may learn from."""

from tests.tables import table

from journeyman.templates.mining.artefacts import (
    ARGUMENTS,
    REQUESTS,
    RESULTS,
    are_cut,
    is_prompted,
    is_stub,
    without_reminders,
)


@table("row", RESULTS, ids=lambda row: row.id)
def test_results(row):
    assert is_stub(row.example)
    assert is_stub(f"\n {row.example}")
    assert not is_stub(f"def main():\n    print({row.example!r})")


@table("row", ARGUMENTS, ids=lambda row: row.id)
def test_arguments(row):
    assert are_cut(row.example)


@table("row", REQUESTS, ids=lambda row: row.id)
def test_requests(row):
    assert is_prompted(row.example)
    assert not is_prompted(f"What does this mean: {row.example}")


@table(
    "result",
    [
        "",
        "[1, 2, 3]",
        '{"status": "changed"}',
        "[terminal] is the name of a tool\nand this is a file about it",
        "ok",
        "[INFO] ran 3 tests\nOK",
    ],
)
def test_ordinary_results_are_no_stubs(result):
    assert not is_stub(result)


def test_ordinary_arguments_are_not_cut():
    assert not are_cut('{"command": "echo ... && cat list[0]"}')


@table(
    ("result", "left"),
    [
        ("1\tdef f():\n\n<system-reminder>\nBe careful.\n</system-reminder>\n", "1\tdef f():\n"),
        ("a<system-reminder>x</system-reminder>b<system-reminder>y", "ab"),
        ("plain", "plain"),
    ],
)
def test_reminders_are_no_part_of_a_result(result, left):
    assert without_reminders(result) == left
