"""Errands with texts: lab notes to search and sum up, configuration to change with care."""

from collections.abc import Sequence

from msgspec import Struct

from journeyman.testing.moves import (
    act,
    at,
    bad_arguments,
    edit,
    foreign_tool,
    py,
    read,
    refused,
    search,
    sh,
    write,
)
from journeyman.testing.sample_data import TOPICS
from journeyman.testing.script import Act, Ask, Step, UserSays
from journeyman.testing.workshop import WORK


def days_of(topic: str) -> list[str]:
    """The notes about a topic, oldest first."""
    first = TOPICS.index(topic)
    slug = topic.replace(" ", "-")
    return [
        f"log/2026-{6 + n // 10:02d}-{2 + 2 * (n % 10):02d}-{slug}.md" for n in range(first, 30, 6)
    ]


def sum_up(topic: str, *slips: str) -> list[Step]:
    """Find the notes about a topic, read them and write a summary. Slips: path, regex, tool."""
    notes = [at("notes", name) for name in days_of(topic)]
    slug = topic.replace(" ", "-")
    steps: list[Step] = [
        UserSays(text=f"What did we learn about {topic} this summer? Write me a summary.")
    ]
    if "path" in slips:
        steps.append(act("", search("result:", at("notes", "entries"))))
    if "regex" in slips:
        steps.append(act("", search(f"result: ({topic}", at("notes", "log"))))
    steps += [
        act(
            f"Every result that mentions {topic}.",
            search(f"result:.*{topic}|^Question.*{topic}", at("notes", "log")),
            thought="The README says each note has a result line, so a search for these lines "
            "gives me the numbers and tells me which notes to read in full.",
        ),
        act("Reading the notes themselves.", *(read(note) for note in notes[:2])),
    ]
    steps += foreign_tool(notes[2]) if "tool" in slips else [act("", read(notes[2]))]
    steps += [
        act("", *(read(note) for note in notes[3:])),
        act("The mean, without trusting my own arithmetic.", py(_mean_code(slug))),
        act("Anything left to do?", search("TODO", at("notes", "log"))),
    ]
    page = (
        f"# {topic}, summer 2026\n\nFive runs, from `{notes[0]}` to `{notes[-1]}`.\n\n"
        "The readings of a day stay close together; the days differ more than that. So whatever "
        "moves the result changes from day to day and not from hour to hour.\n"
    )
    return [
        *steps,
        act("Writing the summary.", write(at("notes", f"summaries/{slug}.md"), page)),
        act("", sh(f"cat summaries/{slug}.md; ls summaries log")),
        act(f"The summary is in `summaries/{slug}.md`. In short: days differ, hours do not."),
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


def _mean_code(slug: str) -> str:
    return (
        "import pathlib\n\n"
        f'files = sorted(pathlib.Path("{WORK}/notes/log").glob("*-{slug}.md"))\n'
        'lines = [file.read_text().split("result: ")[1] for file in files]\n'
        "values = [float(line.split()[0]) for line in lines]\n"
        "for file, value in zip(files, values):\n"
        '    print(f"{file.stem:28} {value:6.1f}")\n'
        'print(f"mean {sum(values) / len(values):.2f} of {len(values)}")\n'
    )


def survey(topics: tuple[str, str]) -> list[Step]:
    """A question that is handed to a subagent, which reads on its own and reports."""
    inner = tuple(step for topic in topics for step in sum_up(topic)[1:5] if isinstance(step, Act))
    report = f"Read the notes on {topics[0]} and {topics[1]}: five runs each, no trend."
    prompt = (
        f"Go through the notes in {WORK}/notes/log on {topics[0]} and on {topics[1]}. Report how "
        "many runs there are for each and whether the results move in one direction."
    )
    ask = Ask(
        tool="subagent",
        arguments={"description": f"Survey {topics[0]} notes", "prompt": prompt},
        inner=(*inner, act(report)),
    )
    page = f"# Survey\n\n{report}\n"
    return [
        UserSays(text=f"Are {topics[0]} and {topics[1]} worth another summer of runs?"),
        act("This is a lot of reading; a subagent can do it while I look at the rest.", ask),
        act("Checking one of its claims myself.", search("^result:", at("notes", "log"))),
        act("", write(at("notes", "summaries/survey.md"), page)),
        act("Probably not: neither moved in one direction. I kept the survey in `summaries/`."),
    ]


class Change(Struct, frozen=True, kw_only=True):
    """A change to the configuration. `vague` is an edit that fits several places or none;
    `harmful` is one that the check finds.
    """

    ask: str
    file: str
    service: str
    old: str
    new: str
    vague: str
    harmful: str


CHANGES: dict[str, Change] = {
    "checkout timeout": Change(
        ask="Checkout should give up after 20 seconds.",
        file="config/services.ini",
        service="checkout",
        old="workers = 6\ntimeout = 30\n",
        new="workers = 6\ntimeout = 20\n",
        vague="timeout = 30\n",
        harmful="workers = 6\ntimeout = 10\n",
    ),
    "catalogue cache": Change(
        ask="The catalogue may cache for ten minutes now.",
        file="config/services.ini",
        service="catalogue",
        old="retries = 3\ncache_ttl = 300\n",
        new="retries = 3\ncache_ttl = 600\n",
        vague="cache-ttl = 300\n",
        harmful="retires = 3\ncache_ttl = 600\n",
    ),
    "gift wrap": Change(
        ask="The label printer is here: turn gift wrap on.",
        file="config/flags.json",
        service="checkout",
        old='{"name": "gift_wrap", "on": false,',
        new='{"name": "gift_wrap", "on": true,',
        vague='"on": false',
        harmful='{"name": "gift_wrap", "on": "yes",',
    ),
    "order export": Change(
        ask="Order exports may be cached for a minute.",
        file="config/routes.conf",
        service="checkout",
        old="/orders/export        checkout    user     0\n",
        new="/orders/export        checkout    user     60\n",
        vague="checkout    user     0\n",
        harmful="/orders/export        checkout    users    60\n",
    ),
    "mail batch": Change(
        ask="Newsletters hit us in waves. Halve the mailer's batch.",
        file="config/services.ini",
        service="mailer",
        old="health_path = /healthz\nsender = shop@example.com\nbatch = 50\n",
        new="health_path = /healthz\nsender = shop@example.com\nbatch = 25\n",
        vague="batch=50\n",
        harmful="healthpath = /healthz\nsender = shop@example.com\nbatch = 25\n",
    ),
}


def change_config(key: str, *slips: str) -> list[Step]:
    """Change one setting as the runbook says. Slips: vague, harmful, blind, arguments, refused."""
    change = CHANGES[key]
    file = at("deploy", change.file)
    steps: list[Step] = [UserSays(text=f"{change.ask} Follow the runbook.")]
    if "blind" in slips:
        steps.append(act("One line.", edit(file, change.old, change.new)))
    steps += [
        act("The runbook first.", read(at("deploy", "docs/runbook.md"))),
        act("", sh(f"sh bin/render.sh {change.service}")),
    ]
    steps += bad_arguments(file) if "arguments" in slips else [act("", read(file))]
    if "vague" in slips:
        steps.append(act("Changing it.", edit(file, change.vague, change.new)))
    if "refused" in slips:
        steps += refused("cp -r config /srv/shop/config", "no deploying from here, see the README")
    now = change.old
    if "harmful" in slips:
        now = change.harmful
        steps += [
            act("Changing it.", edit(file, change.old, now)),
            act("Checking.", sh("sh bin/check.sh")),
        ]
    return [
        *steps,
        act(
            "This time with enough context." if "vague" in slips else "The change.",
            edit(file, now, change.new),
            thought=f"Only [{change.service}] may change. I include a neighbouring line so that "
            "the edit cannot hit another section.",
        ),
        act("", sh("sh bin/check.sh")),
        act("", sh(f"sh bin/render.sh {change.service}")),
        act("", sh("cat config/services.ini config/flags.json config/routes.conf")),
        act(f"Done: {change.file} is changed for {change.service}, and the check has 0 findings."),
    ]
