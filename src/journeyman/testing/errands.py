"""The errands that scripted agents run, and the slips they make on their way: a path that is not
there, a misspelt command, a tool of another harness. Each is followed by the call that works.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import structs

from journeyman.testing.sample_projects import Bug, bugs, note_paths, questions
from journeyman.testing.script import Act, Ask, Compress, Step, UserSays
from journeyman.testing.workshop import WORK


def _asking(tool: str, *names: str) -> Callable[..., Ask]:
    """What asks for a tool, with its arguments in this order."""
    return lambda *given: Ask(tool=tool, arguments=dict(zip(names, given, strict=True)))


sh = _asking("shell", "command")
read = _asking("read", "path")
write = _asking("write", "path", "content")
edit = _asking("edit", "path", "old", "new")
search = _asking("search", "pattern", "path")


def act(text: str, *asks: Ask, thought: str = "") -> Act:
    return Act(text=text, thought=thought, asks=asks)


def fix_bug(name: str, *slips: str) -> list[Step]:
    """From the report to the green tests, in the `invoicer` project. Slips: path, tool, arguments,
    blind, clumsy, vague, typo, refused, stopped, sibling; with `module` only the module's tests
    are run.
    """
    bug = bugs()[name]
    run = "python3 -m unittest -v" + (f" tests.test_{bug.module}" if "module" in slips else "")
    changes, tidy = f"{WORK}/invoicer/CHANGES.md", "rm -r examples"
    entry = f"- {bug.report.split('.')[0]}: fixed ({bug.cause}).\n"
    return [
        UserSays(
            text=f"{bug.report} Please find the cause, fix it and note it in CHANGES.md.", bug=name
        ),
        *_find_cause(bug, run, slips),
        *_mend(bug, slips),
        *(
            [act("Running it.", sh(run.replace("python3", "pyhton3", 1)))]
            if "typo" in slips
            else []
        ),
        act("A typo of mine. Again." if "typo" in slips else "", sh(run)),
        *(_refused(tidy, "leave the examples, others use them") if "refused" in slips else []),
        *(_refused(tidy, "") if "stopped" in slips else []),
        act("Green. Now the note.", read(changes)),
        act("", edit(changes, "# Changes\n", f"# Changes\n\n## Unreleased\n\n{entry}")),
        act("", sh(f"cat invoicer/{bug.module}.py CHANGES.md")),
        act(
            f"Fixed in `invoicer/{bug.module}.py`: {bug.cause}. `{bug.test}` passes again, the "
            "other tests of the module too, and the change is noted in CHANGES.md."
        ),
    ]


def _find_cause(bug: Bug, run: str, slips: Sequence[str]) -> Iterable[Step]:
    module = f"{WORK}/invoicer/invoicer/{bug.module}.py"
    tests = f"{WORK}/invoicer/tests/test_{bug.module}.py"
    asks = [sh(run)]
    if "sibling" in slips:
        example = sh("python3 -m invoicer examples/march.csv")
        asks.append(structs.replace(example, fate="cancelled"))
    yield act(
        f"I'll start with the tests of `{bug.module}`.",
        *asks,
        thought=f"The report sounds like the {bug.module} module. If a test already shows it, I "
        "have a reproduction for free; if not I will write one first.",
    )
    if "path" in slips:
        yield act("Reading the module.", read(f"{WORK}/invoicer/src/{bug.module}.py"))
        yield act(
            "There is no `src` folder here. Let me see where things are.",
            sh(f"find . -name '*{bug.module}.py' | sort"),
            thought="I assumed a src layout. I should look before I guess paths again.",
        )
    if "tool" in slips:
        yield act("Opening the file.", Ask(tool="open_file", arguments={"path": tests}))
    if "arguments" in slips:
        yield act("", Ask(tool="read", arguments={"file": tests}))
    if "blind" in slips:
        yield act("The fix is obvious, changing it.", edit(module, bug.bad, bug.good))
    yield act(f"`{bug.test}` fails. Reading the module.", read(module))
    yield act("", read(tests))


def _mend(bug: Bug, slips: Sequence[str]) -> Iterable[Step]:
    module = f"{WORK}/invoicer/invoicer/{bug.module}.py"
    function = bug.test.removeprefix("test_").split("_")[0]
    yield act(
        "Who else depends on this?",
        search(rf"import .*|{function}", f"{WORK}/invoicer/invoicer"),
        thought=f"I see it: {bug.cause}. Before I change it I want to know the callers, since "
        "somebody may rely on the wrong behaviour.",
    )
    for slip, old in (("clumsy", f"{bug.bad.rstrip()}  # wrong\n"), ("vague", "    return ")):
        if slip in slips:
            yield act("Fixing it.", edit(module, old, bug.good))
            yield act("That text did not identify the place. Looking at it again.", read(module))
    yield act(
        f"The cause: {bug.cause}.",
        edit(module, bug.bad, bug.good),
        thought="A small change in one place. The tests describe the intended behaviour well "
        "enough, so no new test is needed for this.",
    )


def add_test(amount: int, parts: int) -> list[Step]:
    """Another quiet errand in `invoicer`: add a test case and run the module's tests."""
    name = f"test_split_{amount}_into_{parts}"
    test = (
        f"\n    def {name}(self):\n"
        f"        self.assertEqual(sum(split_evenly({amount}, {parts})), {amount})\n"
    )
    tests = f"{WORK}/invoicer/tests/test_money.py"
    anchor = "\n    def test_convert(self):\n"
    return [
        UserSays(text=f"Add a test that splitting {amount} cents into {parts} adds up again."),
        act("", read(tests)),
        act("", edit(tests, anchor, test + anchor)),
        act("Running the module's tests.", sh("python3 -m unittest -v tests.test_money")),
        act(f"`{name}` is in `tests/test_money.py` and passes."),
    ]


def ask_log(name: str, *slips: str) -> list[Step]:
    """Answer a question in the `weblog` project with a small script. Slip: wrong."""
    question = questions()[name]
    tool, page = f"{WORK}/weblog/tools/{name}.py", f"{WORK}/weblog/answers/2026-10-{name}.md"
    body = f"# {question.ask}\n\nSee `tools/{name}.py`; figures from the extract only.\n"
    code, run = question.code, sh(f"python3 tools/{name}.py")
    written = [act("A small script, so that it can be run again.", write(tool, code))]
    if "wrong" in slips:
        written = [
            act("A small script.", write(tool, code.replace(question.right, question.wrong))),
            act("", run),
            act(
                "The data is not what I took it for. Correcting the script.",
                edit(tool, question.wrong, question.right),
                thought="The traceback points at the line. The extract has rows that do not look "
                "like the first ones, so this must be handled and not ignored.",
            ),
        ]
    return [
        UserSays(text=f"{question.ask} Put the answer under answers/ as well."),
        act("", sh("cat README.md tools/summary.py; ls . answers tools")),
        act(
            "",
            sh("head -n 120 access.log"),
            thought="The answer has to come from access.log. I want to see real lines before I "
            "write anything that parses them: separators, missing values, odd rows.",
        ),
        *written,
        act("", run),
        act("", write(page, body)),
        act("", sh(f"cat {page}; ls answers")),
        act(
            f"The figures are above; the page is `{page}`. They come from the extract, so read "
            "them as shares rather than as totals."
        ),
    ]


def sum_up(topic: str, *slips: str) -> list[Step]:
    """Find the notes about a topic, read them and write a summary. Slips: path, tool, refused."""
    log = f"{WORK}/notes/log"
    notes = [f"{WORK}/notes/{path}" for path in note_paths(topic)]
    slug = topic.replace(" ", "-")
    steps: list[Step] = [
        UserSays(text=f"What did we learn about {topic} this summer? Write me a summary.")
    ]
    if "path" in slips:
        steps.append(act("", search("result:", f"{WORK}/notes/entries")))
    if "tool" in slips:
        steps.append(act("", Ask(tool="open_file", arguments={"path": notes[0]})))
    if "refused" in slips:
        steps += _refused("rm log/2026-06-*.md", "the old notes stay where they are")
    page = (
        f"# {topic}, summer 2026\n\nFive runs, from `{notes[0]}` to `{notes[-1]}`.\n\n"
        "The readings of a day stay close together; the days differ more than that. So whatever "
        "moves the result changes from day to day and not from hour to hour.\n"
    )
    mean = (
        "python3 - <<'EOF'\nimport pathlib\n\n"
        f'texts = [f.read_text() for f in pathlib.Path("log").glob("*-{slug}.md")]\n'
        'values = [float(text.split("result: ")[1].split()[0]) for text in texts]\n'
        'print(f"mean {sum(values) / len(values):.2f} of {len(values)}")\nEOF'
    )
    return [
        *steps,
        act(
            f"Every result that mentions {topic}.",
            search(f"result:.*{topic}|^Question.*{topic}", log),
            thought="The README says each note has a result line, so a search for these lines "
            "gives me the numbers and tells me which notes to read in full.",
        ),
        act("Reading the notes themselves.", *(read(note) for note in notes[:2])),
        act("", *(read(note) for note in notes[2:])),
        act("The mean, without trusting my own arithmetic.", sh(mean)),
        act("Anything left to do?", search("TODO", log)),
        act("Writing the summary.", write(f"{WORK}/notes/summaries/{slug}.md", page)),
        act("", sh(f"cat summaries/{slug}.md; ls summaries log")),
        act(f"The summary is in `summaries/{slug}.md`. In short: days differ, hours do not."),
    ]


def survey(first: str, second: str) -> list[Step]:
    """A question about the notes that is handed to a subagent, which reads and reports."""
    inner = [step for topic in (first, second) for step in sum_up(topic)[1:4]]
    report = f"Read the notes on {first} and {second}: five runs each, no trend."
    prompt = (
        f"Go through the notes in {WORK}/notes/log on {first} and on {second}. Report how many "
        "runs there are for each and whether the results move in one direction."
    )
    ask = Ask(
        tool="subagent",
        arguments={"description": f"Survey {first} notes", "prompt": prompt},
        inner=(*(step for step in inner if isinstance(step, Act)), act(report)),
    )
    page = f"{WORK}/notes/summaries/survey.md"
    return [
        UserSays(text=f"Are {first} and {second} worth another summer of runs?"),
        act("This is a lot of reading; a subagent can do it while I look at the rest.", ask),
        act("Checking one of its claims myself.", search("^result:", f"{WORK}/notes/log")),
        act("", write(page, f"# Survey\n\n{report}\n")),
        act("Probably not: neither moved in one direction. I kept the survey in `summaries/`."),
    ]


def keep_list(name: str, things: Sequence[str], extra: str) -> list[Step]:
    """Write a list, sort it, and add a thing to it. Small errands with paths as they were given,
    which another agent can do in another folder the same way.
    """
    path = f"lists/{name}.txt"
    written = "".join(f"{thing}\n" for thing in things)
    return [
        UserSays(text=f"Start a list in {path}, one to a line: {', '.join(things)}."),
        act("", write(path, written)),
        act(f"{path} has {len(things)} lines."),
        UserSays(text=f"Sort the lines of {path} and check the result."),
        act("", sh(f"sort -o {path} {path}")),
        act("", read(path)),
        act(f"Done: {path} is sorted."),
        UserSays(text=f"Add {extra} to the list in {path} and show it."),
        act("", sh(f"echo {extra} >> {path}")),
        act("", read(path)),
        act(f"Done: {extra} is in {path}."),
    ]


def lost() -> list[Step]:
    """A call after which the session ends without a result."""
    return [act("One last look at everything.", structs.replace(sh("ls answers"), fate="lost"))]


def compress(done: str, left: str) -> list[Step]:
    """The harness sums up what was done."""
    summary = (
        f"1. What was asked: several errands, one after the other.\n2. What is done: {done}"
        f"\n3. What is left: {left}\n4. What works here: full paths for files, "
        "`python3 -m unittest -v tests.test_<module>` for tests, reading a file before changing it."
    )
    return [Compress(summary=summary)]


def all_in_shell(steps: Iterable[Step]) -> list[Step]:
    """The same steps for a harness that reads and searches with commands."""

    def command(ask: Ask) -> Ask:
        given = ask.arguments
        if ask.tool == "read":
            return sh(f"cat {given['path']}")
        if ask.tool == "search":
            return sh(f"grep -rnE '{given['pattern']}' {given['path']} | sort")
        return ask

    return [
        structs.replace(step, asks=tuple(command(ask) for ask in step.asks))
        if isinstance(step, Act)
        else step
        for step in steps
    ]


def _refused(command: str, said: str) -> list[Step]:
    """Ask for something that the user does not want, and says why or only stops it."""
    ask = structs.replace(sh(command), fate="refused", said=said)
    return [
        act(
            "Before I go on I would tidy up a little.",
            ask,
            thought="There is some clutter that is not part of the task. Removing it would make "
            "the listing shorter, but it is the user's folder.",
        ),
        *([] if said else [UserSays(text="No need for that. Please go on with the task.")]),
        act("Understood, I leave that alone and go on."),
    ]
