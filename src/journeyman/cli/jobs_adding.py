"""`journeyman jobs add`: keep a job, and say back what was understood."""

import re
import time
from typing import TYPE_CHECKING, Any

import click

from journeyman.cli import asked, files, jobs_shown, shown
from journeyman.schedule.timing.durations import find_duration

if TYPE_CHECKING:
    from journeyman.schedule.jobs import Checked, JobReport, Jobs

_LONGEST_PROMPT = 1024 * 1024
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
_MORE = click.FloatRange(0, min_open=True)
_COUNT = click.IntRange(1)


class _Duration(click.ParamType[float]):
    """A length of time above 0: so many seconds, or 30s, 10m, 2h."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        text = str(value).strip().lower()
        seconds = float(text) if _NUMBER.fullmatch(text) else find_duration(text)
        if seconds is None:
            self.fail(f"{value!r} is no length of time: write 90, 90s, 10m or 2h.", param, ctx)
        if seconds <= 0:
            self.fail(f"{value!r} is no time at all: it has to be above 0.", param, ctx)
        return seconds


@click.command(
    epilog="""\b
Examples:
  journeyman jobs add "every monday 9am" "Summarise what changed in notes/ last week"
  journeyman jobs add "every weekday 18:30" - --name diary --tz Europe/Berlin < prompt.txt
  journeyman jobs add "*/15 * * * *" "Look at the new lines" --script new_lines.py --tokens 20000
  journeyman jobs add "in 30m" "Is the build done?" --deliver terminal --deliver ntfy://ntfy.sh/x
  journeyman jobs add "every 2h" "Check it" --name watch --replace"""
)
@click.argument("schedule")
@click.argument("prompt", nargs=-1, metavar="[PROMPT]")
@click.option("--name", default="", help="What to call it (default: from the prompt's words).")
@click.option(
    "--tz", "timezone", default="", metavar="ZONE", help="Whose clock counts (default: yours)."
)
@click.option("--prompt-file", metavar="FILE", help="Read the prompt from FILE, or input (-).")
@click.option("--skill", "skills", multiple=True, help="A skill it is to follow; repeatable.")
@click.option("--script", metavar="FILE", help="In the home's scripts folder; its output is given.")
@click.option("--script-seconds", type=_Duration(), help="The script's time (default 2m).")
@click.option("--model", help="The model it asks (default: as in the settings).")
@click.option("--provider", help="The name of another endpoint in the settings.")
@click.option("--tool", "tools", multiple=True, help="A tool; repeatable; usual: all usual.")
@click.option("--warm", metavar="auto|NAME|off", help="Examples to start with (default auto).")
@click.option("--workdir", metavar="FOLDER", help="Where it works (default: here).")
@click.option(
    "--deliver",
    multiple=True,
    metavar="PLACE",
    help="terminal, file:/path or an address of apprise's; repeatable.",
)
@click.option("--seconds", type=_Duration(), help="How long a run may take (default 30m).")
@click.option("--tokens", type=_COUNT, help="Tokens in a run at most.")
@click.option("--cost", "cost_usd", type=_MORE, metavar="USD", help="Dollars in a run at most.")
@click.option("--turns", type=_COUNT, help="Requests to the model in a run at most.")
@click.option("--repeat", type=_COUNT, help="Run so often, then no more.")
@click.option("--replace", is_flag=True, help="Change the job of that --name; the rest stays.")
@asked.json_option
@click.pass_context
def add(
    ctx: click.Context,
    /,
    *,
    schedule: str,
    prompt: tuple[str, ...],
    prompt_file: str | None,
    name: str,
    timezone: str,
    replace: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Have an agent do PROMPT at the times of SCHEDULE.

    What was understood and the next five times are shown. SCHEDULE is, for example, in 30m (once),
    every 2h, every monday 9am, a cron expression or a time such as 2027-01-31T09:00. A dash reads
    PROMPT from standard input. It runs while `journeyman jobs serve` does.
    """
    if replace and not name:
        raise click.UsageError("Say with --name which job is to be replaced.")
    said = _prompt(prompt, prompt_file, needed=not replace)
    wanted = {key: value for key, value in options.items() if value not in (None, ())}
    jobs = asked.opened(ctx).jobs
    report = jobs.add(schedule, said, name=name, timezone=timezone, replace=replace, **wanted)
    if as_json:
        told = jobs_shown.told_report(report) | {"check": _checked(jobs, report)}
        asked.print_json(told | {"scheduler": jobs.leading()})
        return
    console = shown.console()
    jobs_shown.show_added(console, report, time.time(), changed=replace)
    jobs_shown.show_checked(console, _checked(jobs, report))
    console.print()
    console.print(jobs_shown.scheduler_line(jobs.leading()), markup=False, soft_wrap=True)


def _prompt(words: tuple[str, ...], file: str | None, *, needed: bool) -> str:
    if len(words) > 1:
        raise click.UsageError(
            "SCHEDULE and PROMPT are one argument each. Put quotes around them: "
            'journeyman jobs add "every monday 9am" "What should be done"'
        )
    if words and file is not None:
        raise click.UsageError("Give PROMPT or --prompt-file, not both.")
    if words and words[0] != files.STANDARD_INPUT:
        return words[0]
    if not words and file is None:
        if not needed:
            return ""
        raise click.UsageError("Say what the agent is to do: PROMPT or --prompt-file.")
    data = files.read(file or files.STANDARD_INPUT, "prompt", most=_LONGEST_PROMPT)
    return data.decode("utf-8", "replace")


def _checked(jobs: "Jobs", report: "JobReport") -> "Checked":
    with shown.waiting("looking whether it could run; Ctrl-C ends that, the job is kept"):
        return jobs.check(report.job)
