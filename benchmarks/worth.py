"""What the facts that Journeyman tells are worth, on any folder of logs, against the simplest
alternatives: nothing, the instructions files, the 20 most used commands, the files of the last 30
commits, and the facts of another project.

    python benchmarks/worth.py LOGS…

The same as `journeyman worth`, in a temporary home. It also asks each project 120 questions that
have nothing to do with it: those that get an answer are false alarms.
"""

import argparse
import tempfile
from pathlib import Path

from rich.console import Console

from journeyman import Journeyman
from journeyman.cli.worth import show_worth

_UNRELATED = Path(__file__).with_name("unrelated.txt")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("logs", nargs="+", type=Path)
    asked = parser.parse_args()
    console = Console(highlight=False, width=100)
    questions = _UNRELATED.read_text(encoding="utf-8").splitlines()
    with (
        tempfile.TemporaryDirectory() as folder,
        Journeyman(home=Path(folder, "home"), environ={"HOME": folder}) as journeyman,
    ):
        journeyman.import_logs(asked.logs)
        journeyman.learn()
        for worth in journeyman.worth(unrelated=questions):
            show_worth(console, worth)
            alarms = f"{len(worth.alarms)} of {len(questions)}"
            console.print(f"unrelated requests with an answer: {alarms}")
            for question, answer in worth.alarms:
                console.print(f"  {question}: {answer}", markup=False)
            console.print()


if __name__ == "__main__":
    main()
