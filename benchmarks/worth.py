"""What the facts that Journeyman tells are worth, on any folder of logs, against the simplest
alternatives: nothing, the instructions files, the 20 most used commands, the files of the last 30
commits, and the facts of another project.

    python benchmarks/worth.py LOGS… [--cases]

The same as `journeyman worth`, in a temporary home. It also prints every fact that was told at a
call or after its failure, with what then happened, and asks each project 120 questions that have
nothing to do with it: those that get an answer are false alarms.
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
    parser.add_argument("--cases", action="store_true", help="print 20 sessions to read")
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
            for hint in worth.hints:
                console.print(f"\n{hint.moment} in {hint.session[:8]}: {hint.text}", markup=False)
                console.print(f"  call: {hint.call}\n  then: {hint.then}", markup=False)
            for case in worth.cases if asked.cases else ():
                console.print(f"\n== {case.session}\n{case.request}", markup=False)
                console.print(f"TOLD\n{case.told}\nFILES {case.files}", markup=False)
                console.print(f"FAILED {case.failed}", markup=False)
            console.print()


if __name__ == "__main__":
    main()
