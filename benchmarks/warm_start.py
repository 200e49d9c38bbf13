"""How many small tasks the embedded model completes, started warm and started cold.

The library holds one recorded session, in which an agent kept lists. The tasks are of the same
kinds with other lists and items. A task is done if the file ends up correct and the agent finished.
Both arms have the same model, tools and limits.

    python benchmarks/warm_start.py
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from journeyman import Journeyman
from journeyman.hosts.runner import RunLimits
from journeyman.models.embedded import EmbeddedModel
from journeyman.testing import write_lists

LISTS = {
    "guests": ("mona", "ada", "zoe", "ben"),
    "cities": ("Rome", "Oslo", "Bonn"),
    "birds": ("wren", "owl", "crow", "finch"),
    "colours": ("red", "blue", "amber"),
}
NEW = {"guests": "eva", "cities": "Lima", "birds": "robin", "colours": "green"}


class Errand(NamedTuple):
    """The request, its list, and the expected content of the list."""

    kind: str
    task: str
    name: str
    wanted: tuple[str, ...]


def errands() -> Iterator[Errand]:
    for name, things in LISTS.items():
        path = f"lists/{name}.txt"
        task = f"Sort the lines of {path} and check the result."
        yield Errand("sort", task, name, tuple(sorted(things)))
        task = f"Add {NEW[name]} to the list in {path} and show it."
        yield Errand("add", task, name, (*things, NEW[name]))


def is_done(journeyman: Journeyman, model: EmbeddedModel, errand: Errand, warm: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        lists = Path(folder, "lists")
        lists.mkdir()
        for name, things in LISTS.items():
            (lists / f"{name}.txt").write_text("".join(f"{thing}\n" for thing in things))
        limits = RunLimits(turns=6)
        with journeyman.agent(model=model, workspace=folder, warm=warm, limits=limits) as agent:
            turn = agent.run_conversation(errand.task)
        found = (lists / f"{errand.name}.txt").read_text().split()
        return turn.is_done and tuple(found) == errand.wanted


def main() -> None:
    model = EmbeddedModel(max_tokens=100)
    all_errands = list(errands())
    done = {"off": 0, "auto": 0}
    with tempfile.TemporaryDirectory() as folder:
        environ = {"HOME": folder}
        with Journeyman(home=Path(folder, "home"), environ=environ) as journeyman:
            journeyman.import_logs(write_lists(Path(folder)))
            journeyman.learn()
            for errand in all_errands:
                told = {warm: is_done(journeyman, model, errand, warm) for warm in done}
                for warm, good in told.items():
                    done[warm] += good
                marks = ", ".join(
                    f"{name} {'done' if told[warm] else 'not done'}"
                    for name, warm in (("cold", "off"), ("warm", "auto"))
                )
                print(f"{errand.task}  {marks}", flush=True)
    count = len(all_errands)
    print(f"cold {done['off']} of {count}, warm {done['auto']} of {count}")


if __name__ == "__main__":
    main()
