"""One job from schedule to delivery on the embedded model."""

from pathlib import Path

import pytest
from tests.job_desk import desk


@pytest.mark.soak
def test_job_runs_on_the_embedded_model(tmp_path: Path) -> None:
    with desk(
        tmp_path, JOURNEYMAN_MODEL_NAME="embedded", JOURNEYMAN_JOBS_MIN_CONTEXT="8000"
    ) as jobs:
        jobs.script("disks.sh", "#!/bin/sh\necho '/home 93 % used'\n")
        answers = tmp_path / "answers.md"
        jobs.add(
            "Which disk is nearly full? Answer in one sentence.",
            script="disks.sh",
            tools=["read_file"],
            warm="off",
            turns=3,
            deliver=[f"file:{answers}"],
        )
        jobs.jobs = jobs.journeyman.jobs
        jobs.clock.now += 86_400
        (run,) = jobs.tick()
        assert (run.status, run.trigger) == ("ok", "late"), run.reason
        assert (run.model, run.provider) == ("SmolLM2-135M-Instruct", "embedded")
        assert run.tokens is not None
        assert run.tokens > 100
        assert run.cost_usd == 0.0
        assert run.answer
        assert run.answer in answers.read_text()
        said = [message.text for message in jobs.journeyman.sessions.messages(run.session)]
        assert "MODEL: SmolLM2-135M-Instruct\nPROVIDER: embedded" in said[0]
        assert "/home 93 % used" in said[1]
        assert said[-1].strip() == run.answer


def test_embedded_window_is_below_the_default_minimum(tmp_path: Path) -> None:
    with desk(tmp_path, JOURNEYMAN_MODEL_NAME="embedded") as jobs:
        jobs.add()
        run = jobs.journeyman.jobs.run("watch", terminal=jobs.heard.append)
        assert run.status == "blocked"
        assert "SmolLM2-135M-Instruct (embedded): its context window is 8,192" in jobs.heard[0]
