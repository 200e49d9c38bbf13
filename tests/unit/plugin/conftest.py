"""Experience for hosts, made once per run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import made_once
from tests.host_service import Desk, Experience, opened, write_experience


@pytest.fixture(scope="session")
def experience(tmp_path_factory: pytest.TempPathFactory) -> Experience:
    """A home that has learned. Do not use it: open a copy."""
    made: Experience = made_once(tmp_path_factory, "host_experience", write_experience)
    return made


@pytest.fixture
def desk(experience: Experience, tmp_path: Path) -> Iterator[Desk]:
    with opened(experience, tmp_path) as desk:
        yield desk
