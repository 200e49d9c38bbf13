"""The projects that scripted agents work on: texts from `projects/`, and generated data. All data
depends on fixed seeds only, so every build on every machine has the same bytes.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct
from tests.samples.script import stable_number

TEXTS = Path(__file__).parent / "projects"
_FILE_MARK = re.compile(r"^==> (.+) <==\n", re.MULTILINE)

PATHS = ("/", "/search", "/products", "/products/images", "/basket", "/checkout", "/orders")
TOPICS = ("hydration", "sensor drift", "cold start", "yeast", "lighting", "soil moisture")


class Bug(Struct, frozen=True, kw_only=True):
    """A row of `projects/bugs.toml`; the fix replaces `bad` with `good`."""

    module: str
    good: str
    bad: str
    test: str
    report: str
    cause: str


class Question(Struct, frozen=True, kw_only=True):
    """A row of `projects/questions.toml`."""

    ask: str
    code: str
    right: str
    wrong: str


@cache
def bugs() -> dict[str, Bug]:
    return msgspec.toml.decode((TEXTS / "bugs.toml").read_bytes(), type=dict[str, Bug])


@cache
def questions() -> dict[str, Question]:
    return msgspec.toml.decode((TEXTS / "questions.toml").read_bytes(), type=dict[str, Question])


def project_files(project: str, bug_names: Sequence[str]) -> dict[str, str]:
    """Return a project's files by path, with the named bugs added."""
    if project == "notes":
        return _notes()
    parts = _FILE_MARK.split((TEXTS / f"{project}.txt").read_text("utf-8"))
    files = dict(zip(parts[1::2], parts[2::2], strict=True))
    if project == "weblog":
        files["access.log"] = _access_log()
    for name in bug_names:
        bug = bugs()[name]
        path = f"invoicer/{bug.module}.py"
        if files[path].count(bug.good) != 1:
            raise ValueError(f"the bug {name} does not fit {path}")
        files[path] = files[path].replace(bug.good, bug.bad)
    return files


@cache
def _access_log() -> str:
    """A day of requests: slow searches, a bad half hour at checkout."""
    rows = []
    for number in range(600):
        second = number * 86400 // 600 + stable_number(f"second {number}", 120)
        path = PATHS[stable_number(f"path {number}", len(PATHS))]
        method = "POST" if path in ("/basket", "/checkout") else "GET"
        is_outage = path == "/checkout" and 50400 <= second < 57600
        status = 502 if is_outage else (404 if stable_number(f"status {number}", 23) == 0 else 200)
        slowness = {"/search": 420, "/checkout": 260, "/products/images": 40}.get(path, 90)
        millis = slowness + stable_number(f"millis {number}", slowness) + (2500 if is_outage else 0)
        size = 400 + stable_number(f"size {number}", 60000)
        visitor = f"v{stable_number(f'visitor {number}', 90):03d}"
        time = f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        rows.append(f"2026-10-05T{time}Z {method} {path} {status} {millis} {size} {visitor}")
    return "\n".join(rows) + "\n"


def note_paths(topic: str) -> list[str]:
    """Return the paths of the notes about a topic, oldest first."""
    slug = topic.replace(" ", "-")
    days = (f"{6 + n // 10:02d}-{2 + 2 * (n % 10):02d}" for n in range(TOPICS.index(topic), 30, 6))
    return [f"log/2026-{day}-{slug}.md" for day in days]


@cache
def _notes() -> dict[str, str]:
    """Lab notes of a small greenhouse and bakery, five for each topic."""
    notes = {path: _note(path, topic) for topic in TOPICS for path in note_paths(topic)}
    notes["README.md"] = (
        "# notes\n\nLab notes in `log/`, one file a day, newest last. Summaries go to `summaries/`."
        "\nEvery note has a `result:` line with a number; lower is better unless it says so.\n"
    )
    return notes


def _note(path: str, topic: str) -> str:
    value = 20 + stable_number(f"value {path}", 600) / 10
    lines = [
        f"# {topic}",
        "",
        f"result: {value:.1f} ({topic})",
        "",
        f"Question: does {topic} explain the spread we saw last week? Nothing else was changed.",
        "",
        "| time  | reading | remark |",
        "| ----- | ------- | ------ |",
    ]
    remarks = ("steady", "door open", "probe moved", "steady", "steady", "recalibrated")
    for step in range(120):
        reading = value + (stable_number(f"reading {path} {step}", 80) - 40) / 10
        remark = remarks[stable_number(f"remark {path} {step}", len(remarks))]
        lines.append(f"| {8 + step // 12:02d}:{step % 12 * 5:02d} | {reading:7.1f} | {remark} |")
    lines += ["", "TODO: enter the readings into the sheet."]
    return "\n".join(lines) + "\n"
