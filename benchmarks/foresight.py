"""The share of what later sessions needed that openings built from earlier sessions would have
shown.

    python benchmarks/foresight.py LOGS… [--budget 1500] [--json]

LOGS are folders or files of Claude Code, Codex or Hermes. Sessions are ordered by time: the earlier
60 % teach, and every request of the later 40 % that ran shell commands successfully is a query. A
command is a program with its subcommand (`git commit`, `mise run lint`); commands that only prepare
or announce (`cd`, `echo`) do not count, nor do commands that need a person's confirmation, which
are never taught. Per arm: the recall of the first 20 distinct commands shown, the recall and
precision of all, the share of requests with at least one hit, how many failures known from three
earlier sessions are mentioned, and the tokens. Arms: ours; the list of the 20 most used commands;
the first 15 examples in stored order; the commands of the nearest requests by BM25 and by vectors,
up to 20. The intervals resample sessions. `journeyman foresight` measures the same on a user's own
library. The ratio of ours to the list is printed last.
"""

import argparse
import tempfile
from pathlib import Path

import msgspec
from rich.console import Console

from journeyman import Journeyman
from journeyman.cli.foresight import show


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--budget", type=int, default=1500)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Journeyman(home=folder) as journeyman:
        journeyman.import_logs(asked.logs)
        journeyman.learn()
        found = journeyman.foresight(budget_tokens=asked.budget)
    if found is None:
        raise SystemExit("There are too few sessions with shell commands to measure foresight on.")
    if asked.json:
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
        return
    show(Console(width=110), found)
    ours, listed = found.arms[:2]
    print(f"ratio to the {listed.name}: {ours.first.estimate / listed.first.estimate:.2f}")


if __name__ == "__main__":
    main()
