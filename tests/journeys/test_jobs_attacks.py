"""Regression tests for faults found by attacking jobs and by observing new users."""

import dataclasses
import threading
import time
from pathlib import Path

import pytest
from tests.job_desk import desk
from tests.tables import table
from tests.waiting import LONGEST_S

from journeyman.agent.turn import NO_USAGE
from journeyman.jobs.scheduler import LOST, heartbeat
from journeyman.records import Tokens
from journeyman.records.errors import UnknownJob, WrongInput
from journeyman.records.job import Run, RunId
from journeyman.testing import calls, says

LOOK = ("search_files", {"pattern": "x"})


def test_heartbeat_keeps_its_run_until_it_ends(tmp_path: Path) -> None:
    with desk(tmp_path) as jobs:
        job = jobs.jobs.get(jobs.add())
        claims = jobs.journeyman._store.jobs
        run = Run(id=RunId("r"), job=job.id, trigger="hand", started_at=jobs.clock.now)
        assert claims.begin(run, alive_until=jobs.clock.now)
        lost: list[object] = []
        gone = threading.Event()

        def lose(runs: object) -> None:
            lost.append(runs)
            gone.set()

        with heartbeat(claims, lambda: ("r",), jobs.clock, lose, interval_s=0.01):
            time.sleep(0.1)
            assert not lost
            jobs.clock.now += 1000
            claims.finish(run, lambda one: one)  # the run stays running
            assert not gone.wait(0.1)
            ended = Run(id=run.id, job=job.id, trigger="hand", started_at=0.0, status="ok")
            claims.finish(ended, lambda one: one)
            assert gone.wait(LONGEST_S)


def test_result_of_a_lost_run_is_neither_stored_nor_delivered(tmp_path: Path) -> None:
    with desk(tmp_path, says("All is well.")) as jobs:
        job = jobs.jobs.get(jobs.add())
        run = Run(id=RunId("r"), job=job.id, trigger="schedule", started_at=jobs.clock.now)
        runner = dataclasses.replace(jobs.jobs._runner, terminal=jobs.heard.append)
        done = runner.work(job, run, lambda: False, is_own=lambda: False)
        assert done.output == ""
        assert jobs.heard == []
        assert not (jobs.home / "jobs").exists()


def test_killed_manual_run_is_reported_by_the_next_one(tmp_path: Path) -> None:
    with desk(tmp_path, says("All is well.")) as jobs:
        job = jobs.jobs.get(jobs.add())
        dead = Run(id=RunId("dead"), job=job.id, trigger="hand", started_at=jobs.clock.now)
        jobs.journeyman._store.jobs.begin(dead, alive_until=jobs.clock.now + 60)
        with pytest.raises(WrongInput, match="already running"):
            jobs.jobs.run("watch")
        jobs.clock.now += 61
        assert jobs.jobs.run("watch", terminal=jobs.heard.append).status == "ok"
        told = jobs.jobs.show("watch").runs[-1]
        assert (told.status, told.reason) == ("crashed", LOST)
        assert "ended abruptly" in jobs.heard[0]
        assert told.delivered == ("terminal",)


class TestLimits:
    def test_prompt_over_the_token_limit_is_not_sent(self, tmp_path: Path) -> None:
        with desk(tmp_path, says("Done.")) as jobs:
            run = jobs.run(tokens=100)
            assert run.status == "over_budget"
            assert "the limit is 100" in run.reason
            assert not jobs.asked

    def test_request_that_would_exceed_the_limit_is_not_sent(self, tmp_path: Path) -> None:
        line = calls(LOOK, tokens=Tokens(input_tokens=2_000, output_tokens=100))
        with desk(tmp_path, line, says("Done.")) as jobs:
            run = jobs.run(tokens=4_000)
            assert run.status == "over_budget"
            assert run.tokens == 2_100
            assert len(jobs.asked) == 1

    @table("limit", [{"tokens": 50_000}, {"cost_usd": 1.0, "model": "gpt-5-mini"}])
    def test_server_without_usage_data_stops_a_limited_job(
        self, tmp_path_factory: pytest.TempPathFactory, limit: dict[str, object]
    ) -> None:
        folder = tmp_path_factory.mktemp("row")
        lines = [calls(LOOK, first=place, tokens=Tokens()) for place in range(5)]
        with desk(folder, *lines) as jobs:
            run = jobs.run(**limit)
            assert (run.status, run.reason) == ("over_budget", NO_USAGE)
            assert len(jobs.asked) == 1


class TestReplace:
    def test_omitted_options_are_kept(self, tmp_path: Path) -> None:
        with desk(tmp_path, says("Done.")) as jobs:
            place = f"file:{tmp_path / 'a.md'}"
            jobs.script("look.sh", "#!/bin/sh\n")
            jobs.add(
                "Look.", script="look.sh", deliver=[place], tokens=5_000, timezone="Asia/Tokyo"
            )
            report = jobs.jobs.add("every 2h", "", name="watch", replace=True)
            job = report.job
            assert (job.prompt, job.script, job.tokens) == ("Look.", "look.sh", 5_000)
            assert (job.deliver, job.schedule.timezone) == ((place,), "Asia/Tokyo")
            assert job.schedule.seconds == 7_200
            assert (
                jobs.jobs.add("every 2h", "", name="watch", replace=True, script="").job.script
                == ""
            )

    def test_paused_job_stays_paused(self, tmp_path: Path) -> None:
        with desk(tmp_path) as jobs:
            jobs.add()
            jobs.jobs.pause("watch", "on holiday")
            job = jobs.jobs.add("every 2h", "Look.", name="watch", replace=True).job
            assert (job.state, job.next_run_at, job.remark) == ("paused", None, "on holiday")
            assert jobs.jobs.pause("watch").remark == "on holiday"

    def test_replace_needs_the_full_name(self, tmp_path: Path) -> None:
        with desk(tmp_path) as jobs:
            job = jobs.jobs.get(jobs.add())
            with pytest.raises(UnknownJob, match="to replace"):
                jobs.jobs.add("every 2h", "Look.", name=job.id[:4], replace=True)
            jobs.jobs.remove("watch")
            with pytest.raises(UnknownJob, match="to replace"):
                jobs.jobs.add("every 2h", "Look.", name="watch", replace=True)

    @table(
        "wrong",
        [{"deliver": []}, {"tools": ["nope"]}, {"script": "../x.sh"}, {"script": "/etc/passwd"}],
        ids=["no place", "unknown tool", "parent folder", "absolute path"],
    )
    def test_invalid_options_are_refused(
        self, tmp_path_factory: pytest.TempPathFactory, wrong: dict[str, object]
    ) -> None:
        folder = tmp_path_factory.mktemp("row")
        with desk(folder) as jobs, pytest.raises(WrongInput):
            jobs.add(**wrong)


def test_refused_calls_are_noted_in_the_remarks(tmp_path: Path) -> None:
    push = ("terminal", {"command": "git push --force origin main"})
    with desk(tmp_path, calls(push), says("It was not done, for it was refused.")) as jobs:
        run = jobs.run(tools=["terminal"])
        assert "1 call was refused." in run.remarks


def test_cancelled_run_is_interrupted(tmp_path: Path) -> None:
    with desk(tmp_path, says("Done.")) as jobs:
        name = jobs.add()
        run = jobs.jobs.run(name, terminal=jobs.heard.append, cancelled=lambda: True)
        assert (run.status, run.reason) == ("interrupted", "The run was stopped.")
