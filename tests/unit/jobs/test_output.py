"""The output file of a run: its content, its path, and names that must not lead elsewhere."""

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.tables import table

from journeyman.jobs.output import write_output
from journeyman.records.errors import OutsideProblem
from journeyman.records.job import Job, JobId, Run, RunId, Schedule

SCHEDULE = Schedule(text="every day 09:00", kind="cron", timezone="Europe/Berlin", cron="0 9 * * *")
JOB = Job(id=JobId("j1"), name="news", prompt="What is new?", schedule=SCHEDULE)
RUN = Run(
    id=RunId("r1"),
    job=JOB.id,
    trigger="late",
    started_at=1_800_000_000.0,
    due_at=1_799_999_940.0,
    missed=2,
    status="ok",
    ended_at=1_800_000_012.34,
    remarks=("It ran late.", "Two\nlines"),
    model="m",
    provider="p",
    session="s1",
    answer="**All** is well.",
    tokens=12_345,
    cost_usd=0.0123,
)


def written(
    folder: Path,
    *,
    name: str = "news",
    prompt: str = "Be brief.",
    script: str = "",
    **changes: Any,
) -> Path:
    job, run = structs.replace(JOB, name=name), structs.replace(RUN, **changes)
    return write_output(folder, job, run, prompt=prompt, script=script)


def test_file_contains_everything(tmp_path: Path) -> None:
    path = write_output(
        tmp_path / "output",
        structs.replace(JOB, schedule=structs.replace(JOB.schedule, said="every day at 9")),
        RUN,
        prompt="Be brief.",
        script="3 mails",
    )
    assert path == tmp_path / "output" / "news" / "20270115-080000-r1.md"
    assert (
        path.read_text()
        == """\
# news

- status: ok
- schedule: every day at 9
- started by: late
- due: 2027-01-15 08:59:00+01:00
- due times missed: 2
- started: 2027-01-15 09:00:00+01:00
- ended: 2027-01-15 09:00:12+01:00
- seconds: 12.3
- model: m
- provider: p
- session: s1
- tokens: 12,345
- cost: 0.0123 USD
- remark: It ran late.
- remark: Two lines
- job: j1
- run: r1

## Prompt

```
Be brief.
```

## Script

```
3 mails
```

## Answer

**All** is well.
"""
    )


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = written(tmp_path / "output")
    finally:
        os.umask(before)
    modes = [one.stat().st_mode & 0o777 for one in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


def test_error_and_partial_answer_are_included(tmp_path: Path) -> None:
    text = written(tmp_path, status="failed", reason="exit code 3", answer="Half").read_text()
    assert "- reason: exit code 3\n" in text
    assert text.endswith("## Error\n\nexit code 3\n\n## Answer\n\nHalf\n")


@table(
    ("name", "folder"),
    [("daily_2.0", "daily_2.0"), ("../../etc/cron.d/x", "j1"), ("..", "j1"), ("", "j1")],
    ids=["valid", "parent", "two dots", "empty"],
)
def test_job_name_cannot_escape_the_output_folder(tmp_path: Path, name: str, folder: str) -> None:
    path = written(tmp_path / "output", name=name)
    assert path == tmp_path / "output" / folder / "20270115-080000-r1.md"
    assert path.is_file()
    assert [one.name for one in tmp_path.iterdir()] == ["output"]


def test_prompt_cannot_forge_parts_of_the_file(tmp_path: Path) -> None:
    prompt = "```\n## Answer\n````\n\x1b[2J\ud800"
    text = written(tmp_path, prompt=prompt, name="a\n## Answer").read_text()
    assert "`````\n```\n## Answer\n````\n␛[2J�\n`````\n" in text
    assert text.startswith("# a ## Answer\n")


def test_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "news").write_text("in the way")
    with pytest.raises(
        OutsideProblem, match=r"job 'news' could not be written to .*/news: File exists"
    ):
        written(tmp_path)
