"""The tasks of scripted agents, with typical mistakes: a path that does not exist, a misspelt
command, a tool of another harness. Each mistake is followed by the call that works.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import structs
from tests.samples.sample_projects import Bug, bugs, note_paths, questions
from tests.samples.script import (
    AgentMessage,
    CallRequest,
    Compression,
    ScriptStep,
    UserMessage,
)
from tests.samples.workshop import WORK


def _request_factory(tool: str, *names: str) -> Callable[..., CallRequest]:
    """Return a function that requests a tool, with its arguments in this order."""
    return lambda *arguments: CallRequest(
        tool=tool, arguments=dict(zip(names, arguments, strict=True))
    )


sh = _request_factory("shell", "command")
read = _request_factory("read", "path")
write = _request_factory("write", "path", "content")
edit = _request_factory("edit", "path", "old", "new")
search = _request_factory("search", "pattern", "path")


def act(text: str, *requests: CallRequest, thought: str = "") -> AgentMessage:
    return AgentMessage(text=text, thought=thought, requests=requests)


def fix_bug(name: str, *mistakes: str) -> list[ScriptStep]:
    """Fix a reported bug in the `invoicer` project until the tests pass. Mistakes: path, tool,
    arguments, blind, clumsy, vague, typo, refused, stopped, sibling; with `module`, only the tests
    of the module run.
    """
    bug = bugs()[name]
    run = "python3 -m unittest -v" + (f" tests.test_{bug.module}" if "module" in mistakes else "")
    changes, tidy = f"{WORK}/invoicer/CHANGES.md", "rm -r examples"
    entry = f"- {bug.report.split('.')[0]}: fixed ({bug.cause}).\n"
    return [
        UserMessage(
            text=f"{bug.report} Please find the cause, fix it and note it in CHANGES.md.", bug=name
        ),
        *_find_cause(bug, run, mistakes),
        *_fix(bug, mistakes),
        *(
            [act("Running it.", sh(run.replace("python3", "pyhton3", 1)))]
            if "typo" in mistakes
            else []
        ),
        act("A typo of mine. Again." if "typo" in mistakes else "", sh(run)),
        *(_refused(tidy, "leave the examples, others use them") if "refused" in mistakes else []),
        *(_refused(tidy, "") if "stopped" in mistakes else []),
        act("Green. Now the note.", read(changes)),
        act("", edit(changes, "# Changes\n", f"# Changes\n\n## Unreleased\n\n{entry}")),
        act("", sh(f"cat invoicer/{bug.module}.py CHANGES.md")),
        act(
            f"Fixed in `invoicer/{bug.module}.py`: {bug.cause}. `{bug.test}` passes again, the "
            "other tests of the module too, and the change is noted in CHANGES.md."
        ),
    ]


def _find_cause(bug: Bug, run: str, mistakes: Sequence[str]) -> Iterable[ScriptStep]:
    module = f"{WORK}/invoicer/invoicer/{bug.module}.py"
    tests = f"{WORK}/invoicer/tests/test_{bug.module}.py"
    requests = [sh(run)]
    if "sibling" in mistakes:
        example = sh("python3 -m invoicer examples/march.csv")
        requests.append(structs.replace(example, fate="cancelled"))
    yield act(
        f"I'll start with the tests of `{bug.module}`.",
        *requests,
        thought=f"The report sounds like the {bug.module} module. If a test already shows it, I "
        "have a reproduction for free; if not I will write one first.",
    )
    if "path" in mistakes:
        yield act("Reading the module.", read(f"{WORK}/invoicer/src/{bug.module}.py"))
        yield act(
            "There is no `src` folder here. Let me see where things are.",
            sh(f"find . -name '*{bug.module}.py' | sort"),
            thought="I assumed a src layout. I should look before I guess paths again.",
        )
    if "tool" in mistakes:
        yield act("Opening the file.", CallRequest(tool="open_file", arguments={"path": tests}))
    if "arguments" in mistakes:
        yield act("", CallRequest(tool="read", arguments={"file": tests}))
    if "blind" in mistakes:
        yield act("The fix is obvious, changing it.", edit(module, bug.bad, bug.good))
    yield act(f"`{bug.test}` fails. Reading the module.", read(module))
    yield act("", read(tests))


def _fix(bug: Bug, mistakes: Sequence[str]) -> Iterable[ScriptStep]:
    module = f"{WORK}/invoicer/invoicer/{bug.module}.py"
    function = bug.test.removeprefix("test_").split("_")[0]
    yield act(
        "Who else depends on this?",
        search(rf"import .*|{function}", f"{WORK}/invoicer/invoicer"),
        thought=f"I see it: {bug.cause}. Before I change it I want to know the callers, since "
        "somebody may rely on the wrong behaviour.",
    )
    for mistake, old in (("clumsy", f"{bug.bad.rstrip()}  # wrong\n"), ("vague", "    return ")):
        if mistake in mistakes:
            yield act("Fixing it.", edit(module, old, bug.good))
            yield act("That text did not identify the place. Looking at it again.", read(module))
    yield act(
        f"The cause: {bug.cause}.",
        edit(module, bug.bad, bug.good),
        thought="A small change in one place. The tests describe the intended behaviour well "
        "enough, so no new test is needed for this.",
    )


def add_test(amount: int, parts: int) -> list[ScriptStep]:
    """Add a test case in `invoicer` and run the tests of the module, without mistakes."""
    name = f"test_split_{amount}_into_{parts}"
    test = (
        f"\n    def {name}(self):\n"
        f"        self.assertEqual(sum(split_evenly({amount}, {parts})), {amount})\n"
    )
    tests = f"{WORK}/invoicer/tests/test_money.py"
    anchor = "\n    def test_convert(self):\n"
    return [
        UserMessage(text=f"Add a test that splitting {amount} cents into {parts} adds up again."),
        act("", read(tests)),
        act("", edit(tests, anchor, test + anchor)),
        act("Running the module's tests.", sh("python3 -m unittest -v tests.test_money")),
        act(f"`{name}` is in `tests/test_money.py` and passes."),
    ]


def ask_log(name: str, *mistakes: str) -> list[ScriptStep]:
    """Answer a question in the `weblog` project with a small script. Mistake: wrong."""
    question = questions()[name]
    tool, page = f"{WORK}/weblog/tools/{name}.py", f"{WORK}/weblog/answers/2026-10-{name}.md"
    body = f"# {question.ask}\n\nSee `tools/{name}.py`; figures from the extract only.\n"
    code, run = question.code, sh(f"python3 tools/{name}.py")
    written = [act("A small script, so that it can be run again.", write(tool, code))]
    if "wrong" in mistakes:
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
        UserMessage(text=f"{question.ask} Put the answer under answers/ as well."),
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


def sum_up(topic: str, *mistakes: str) -> list[ScriptStep]:
    """Find the notes about a topic, read them and summarise them. Mistakes: path, tool, refused."""
    log = f"{WORK}/notes/log"
    notes = [f"{WORK}/notes/{path}" for path in note_paths(topic)]
    slug = topic.replace(" ", "-")
    steps: list[ScriptStep] = [
        UserMessage(text=f"What did we learn about {topic} this summer? Write me a summary.")
    ]
    if "path" in mistakes:
        steps.append(act("", search("result:", f"{WORK}/notes/entries")))
    if "tool" in mistakes:
        steps.append(act("", CallRequest(tool="open_file", arguments={"path": notes[0]})))
    if "refused" in mistakes:
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


def survey(first: str, second: str) -> list[ScriptStep]:
    """Delegate a question about the notes to a subagent, which reads and reports."""
    delegated = [step for topic in (first, second) for step in sum_up(topic)[1:4]]
    report = f"Read the notes on {first} and {second}: five runs each, no trend."
    prompt = (
        f"Go through the notes in {WORK}/notes/log on {first} and on {second}. Report how many "
        "runs there are for each and whether the results move in one direction."
    )
    request = CallRequest(
        tool="subagent",
        arguments={"description": f"Survey {first} notes", "prompt": prompt},
        subagent=(*(step for step in delegated if isinstance(step, AgentMessage)), act(report)),
    )
    page = f"{WORK}/notes/summaries/survey.md"
    return [
        UserMessage(text=f"Are {first} and {second} worth another summer of runs?"),
        act("This is a lot of reading; a subagent can do it while I look at the rest.", request),
        act("Checking one of its claims myself.", search("^result:", f"{WORK}/notes/log")),
        act("", write(page, f"# Survey\n\n{report}\n")),
        act("Probably not: neither moved in one direction. I kept the survey in `summaries/`."),
    ]


def keep_list(name: str, items: Sequence[str], extra: str) -> list[ScriptStep]:
    """Write a list, sort it, and add an item. The paths are relative, so that another agent can do
    the same tasks in another folder.
    """
    path = f"lists/{name}.txt"
    written = "".join(f"{item}\n" for item in items)
    return [
        UserMessage(text=f"Start a list in {path}, one to a line: {', '.join(items)}."),
        act("", write(path, written)),
        act(f"{path} has {len(items)} lines."),
        UserMessage(text=f"Sort the lines of {path} and check the result."),
        act("", sh(f"sort -o {path} {path}")),
        act("", read(path)),
        act(f"Done: {path} is sorted."),
        UserMessage(text=f"Add {extra} to the list in {path} and show it."),
        act("", sh(f"echo {extra} >> {path}")),
        act("", read(path)),
        act(f"Done: {extra} is in {path}."),
    ]


def lost() -> list[ScriptStep]:
    """Request a call, and end the session without its result."""
    return [act("One last look at everything.", structs.replace(sh("ls answers"), fate="lost"))]


def compress(done: str, left: str) -> list[ScriptStep]:
    """Let the harness summarise what was done."""
    summary = (
        f"1. What was asked: several errands, one after the other.\n2. What is done: {done}"
        f"\n3. What is left: {left}\n4. What works here: full paths for files, "
        "`python3 -m unittest -v tests.test_<module>` for tests, reading a file before changing it."
    )
    return [Compression(summary=summary)]


def all_in_shell(steps: Iterable[ScriptStep]) -> list[ScriptStep]:
    """Return the same steps for a harness that reads and searches with commands."""

    def command(request: CallRequest) -> CallRequest:
        arguments = request.arguments
        if request.tool == "read":
            return sh(f"cat {arguments['path']}")
        if request.tool == "search":
            return sh(f"grep -rnE '{arguments['pattern']}' {arguments['path']} | sort")
        return request

    return [
        structs.replace(step, requests=tuple(command(request) for request in step.requests))
        if isinstance(step, AgentMessage)
        else step
        for step in steps
    ]


def _refused(command: str, refusal: str) -> list[ScriptStep]:
    """Request something that the user refuses, with a reason or, if it is empty, without."""
    request = structs.replace(sh(command), fate="refused", refusal=refusal)
    return [
        act(
            "Before I go on I would tidy up a little.",
            request,
            thought="There is some clutter that is not part of the task. Removing it would make "
            "the listing shorter, but it is the user's folder.",
        ),
        *([] if refusal else [UserMessage(text="No need for that. Please go on with the task.")]),
        act("Understood, I leave that alone and go on."),
    ]
