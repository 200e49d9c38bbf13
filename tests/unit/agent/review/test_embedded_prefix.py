"""Prompt caching on the real engine: a review continues the prompt of its turn."""

from pathlib import Path

import pytest

from journeyman import Journeyman
from journeyman.models.embedded import EmbeddedModel
from journeyman.records.errors import MissingPart


@pytest.mark.soak
def test_review_reuses_the_cached_prompt_of_the_turn(tmp_path: Path) -> None:
    try:
        model = EmbeddedModel(max_tokens=64)
    except MissingPart as missing:
        pytest.skip(str(missing))
    work = tmp_path / "work"
    work.mkdir()
    environ = {"HOME": str(tmp_path), "JOURNEYMAN_REVIEW_EVERY_TURNS": "1"}
    with Journeyman(home=tmp_path / "home", environ=environ) as jm:
        with jm.agent(model=model, workspace=work, warm="off", review=True) as agent:
            turn = agent.run_conversation("Reply with the word yes.")
            assert agent.wait_for_review(120)
        rows = jm.sessions.usage(turn.session)
        main = [row for row in rows if row.task == ""]
        review = [row for row in rows if row.task == "background_review"]
    assert turn.status == "done"
    assert review, "the turn was not reviewed"
    last, first = main[-1], review[0]
    prompt = (last.input_tokens or 0) + (last.cache_read_tokens or 0)
    assert prompt > 500
    assert (first.cache_read_tokens or 0) >= 0.95 * prompt
