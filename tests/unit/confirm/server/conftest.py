"""A real server for each test module in this directory."""

from collections.abc import Iterator

import pytest
from tests.confirm_server import ConfirmServer, confirm_server

POLICY = """
requester_limit = 100000

[[rules]]
action = "read_file"
tier = "routine"

[[rules]]
action = "launch_missiles"
tier = "forbidden"

[[rules]]
action = "hire"
tier = "ask"
quorum = 2

[[rules]]
action = "send_letter"
tier = "ask"
edits = ["to"]

[[rules]]
action = "rare"
tier = "ask"
rate_limit = 1
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmServer]:
    home = tmp_path_factory.mktemp("confirm")
    with confirm_server(home, policy=POLICY, heartbeat_s=0.1) as running:
        yield running
