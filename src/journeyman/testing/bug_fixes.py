"""Errands in the `invoicer` project: find a bug, fix it, show that it is fixed."""

from journeyman.testing.bugs import BUGS, Bug
from journeyman.testing.moves import (
    act,
    at,
    bad_arguments,
    edit,
    foreign_tool,
    misspelt,
    read,
    refused,
    search,
    sh,
    write,
    wrong_path,
)
from journeyman.testing.script import Ask, Step, UserSays

PROJECT = "invoicer"


def fix_bug(name: str, *slips: str) -> list[Step]:
    """From the report to the green tests. Slips: path, tool, arguments, blind, clumsy, typo,
    refused, stopped, sibling; with `module` only the module's tests are run.
    """
    bug = BUGS[name]
    return [
        UserSays(text=f"{bug.report} Please find the cause, fix it and note it in CHANGES.md."),
        *_look(bug, slips),
        *_change(bug, slips),
        *_show(bug, slips),
    ]


def _look(bug: Bug, slips: tuple[str, ...]) -> list[Step]:
    module = at(PROJECT, f"invoicer/{bug.module}.py")
    tests = at(PROJECT, f"tests/test_{bug.module}.py")
    run = sh(_test_command(bug, slips))
    steps: list[Step] = []
    if "sibling" in slips:
        steps.append(_with_sibling(bug, run))
    else:
        steps.append(
            act(
                f"I'll start with the tests of `{bug.module}`.",
                run,
                thought=f"The report sounds like the {bug.module} module. If a test already shows "
                "it, I have a reproduction for free; if not I will write one first.",
            )
        )
    if "path" in slips:
        steps += wrong_path(PROJECT, f"invoicer/{bug.module}.py")
    if "tool" in slips:
        steps += foreign_tool(tests)
    if "arguments" in slips:
        steps += bad_arguments(tests)
    if "blind" in slips:
        steps.append(act("The fix is obvious, changing it.", edit(module, bug.bad, bug.good)))
    steps.append(act(f"`{bug.test}` fails. Reading the module.", read(module)))
    if "tool" not in slips and "arguments" not in slips:
        steps.append(act("", read(tests)))
    return steps


def _test_command(bug: Bug, slips: tuple[str, ...]) -> str:
    return "python3 -m unittest -v" + (f" tests.test_{bug.module}" if "module" in slips else "")


def _with_sibling(bug: Bug, run: Ask) -> Step:
    example = Ask(
        tool="shell",
        arguments={"command": "python3 -m invoicer examples/march.csv"},
        fate="cancelled",
    )
    return act(f"Running the tests of `{bug.module}` and the example side by side.", run, example)


def _change(bug: Bug, slips: tuple[str, ...]) -> list[Step]:
    module = at(PROJECT, f"invoicer/{bug.module}.py")
    function = bug.test.removeprefix("test_").split("_")[0]
    steps: list[Step] = [
        act(
            "Who else depends on this?",
            search(rf"import .*|{function}", at(PROJECT, "invoicer")),
            thought=f"I see it: {bug.cause}. Before I change it I want to know the callers, since "
            "somebody may rely on the wrong behaviour.",
        )
    ]
    if "clumsy" in slips:
        steps += [
            act("Fixing it.", edit(module, bug.clumsy, bug.good)),
            act("That text did not identify the place. Looking at it again.", read(module)),
        ]
    steps.append(
        act(
            f"The cause: {bug.cause}.",
            edit(module, bug.bad, bug.good),
            thought="A small change in one place. The tests describe the intended behaviour well "
            "enough, so no new test is needed for this.",
        )
    )
    return steps


def _show(bug: Bug, slips: tuple[str, ...]) -> list[Step]:
    changes = at(PROJECT, "CHANGES.md")
    entry = f"- {bug.report.split('.')[0]}: fixed ({bug.cause}).\n"
    steps: list[Step] = []
    run = _test_command(bug, slips)
    steps += misspelt(run) if "typo" in slips else [act("", sh(run))]
    if "refused" in slips:
        steps += refused("rm -r examples", "leave the examples, others use them")
    if "stopped" in slips:
        steps += refused("mv examples/march.csv /tmp", "")
    steps += [
        act("Green. Now the note.", read(changes)),
        act("", edit(changes, "# Changes\n", f"# Changes\n\n## Unreleased\n\n{entry}")),
        act("", sh(f"cat invoicer/{bug.module}.py CHANGES.md")),
        act(
            f"Fixed in `invoicer/{bug.module}.py`: {bug.cause}. `{bug.test}` passes again, the "
            "other tests of the module too, and the change is noted in CHANGES.md."
        ),
    ]
    return steps


def write_guide(number: int) -> list[Step]:
    """A quiet errand: read the code and write a page about it."""
    module = ("money", "dates", "tax", "lines", "report")[number % 5]
    guide = at(PROJECT, f"docs/{module}.md")
    text = (
        f"# {module}\n\nWhat `invoicer/{module}.py` promises, with an example for each function."
        "\n\nAmounts are whole cents and rates are integers, so nothing is ever rounded twice. "
        "Errors are `ValueError` with a sentence that names the bad value. The tests in "
        f"`tests/test_{module}.py` are the specification; this page follows them.\n"
    )
    return [
        UserSays(text=f"Write a short guide to the {module} module under docs/, please."),
        act("Reading the module and its tests.", read(at(PROJECT, f"invoicer/{module}.py"))),
        act("", read(at(PROJECT, f"tests/test_{module}.py"))),
        act("Which functions are public?", search(r"^def |^class ", at(PROJECT, "invoicer"))),
        act("Writing the page.", write(guide, text)),
        act("", read(at(PROJECT, "README.md"))),
        act(
            "",
            edit(
                at(PROJECT, "README.md"),
                "## Modules\n",
                f"See `docs/{module}.md` for {module}.\n\n## Modules\n",
            ),
        ),
        act("", sh("ls docs; cat README.md docs/*.md")),
        act(f"`docs/{module}.md` is there and the README points to it."),
    ]


def add_test(number: int) -> list[Step]:
    """Another quiet errand: add a test case and run everything."""
    amount = 1000 + 37 * number
    parts = 3 + number % 5
    test = (
        f"\n    def test_split_{amount}_into_{parts}(self):\n"
        f"        self.assertEqual(sum(split_evenly({amount}, {parts})), {amount})\n"
    )
    tests = at(PROJECT, "tests/test_money.py")
    anchor = "\n    def test_convert(self):\n"
    return [
        UserSays(text=f"Add a test that splitting {amount} cents into {parts} adds up again."),
        act("", read(tests)),
        act("", edit(tests, anchor, test + anchor)),
        act("Running the module's tests.", sh("python3 -m unittest -v tests.test_money")),
        act(f"`test_split_{amount}_into_{parts}` is in `tests/test_money.py` and passes."),
    ]
