"""What is left for a person to do, so that a host uses what is installed."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from journeyman.hosts.installation.codex_trust import (
    ANSWER_S,
    HOW_TO_SEE,
    HOW_TO_TRUST,
    NOT_SEEN,
    has_run,
    read_hooks,
)
from journeyman.hosts.installation.installer import ADD_APPROVER, Installer
from journeyman.hosts.installation.programs import SERVICE
from journeyman.hosts.installation.record import read_record
from journeyman.hosts.installation.targets import unit_of


class Step(Struct, frozen=True, kw_only=True):
    """Something that is left for a person to do: why or what, in sentences, and the command, or how
    it is done without one.
    """

    text: str
    command: str = ""
    how: str = ""

    def __str__(self) -> str:
        if self.command:
            return f"{self.text.removesuffix('.')}: {self.command}"
        return f"{self.text} {self.how}".strip()

    @property
    def advice(self) -> str:
        return self.command or self.how


def steps_after(installer: Installer, name: str) -> list[Step]:
    """Return what is left to do for a person after an installation."""
    steps: list[Step] = []
    if name == SERVICE:
        unit = unit_of(installer.around, installer.manager)
        return [Step(text="Start it, now and at every login.", command=unit.start)]
    if name == "codex":
        steps += codex_steps(installer)
    if name == "hermes":
        steps += hermes_steps(installer)
    record = read_record(installer.home, name)
    if record is not None and "gate" in record.parts:
        steps.append(Step(text=installer.where_to_decide))
    if record is not None and record.token and not installer.has_approver:
        text = "No one may decide on held calls yet. Create a login for yourself."
        steps.append(Step(text=text, command=ADD_APPROVER))
    return [*steps, Step(text="Try it.", command=f"journeyman hosts check {name}")]


def codex_steps(
    installer: Installer, *, timeout_s: float = ANSWER_S, is_known: bool = False
) -> Iterator[Step]:
    """Return which hooks Codex has to be told to trust. If it does not answer, they are assumed to
    need that, unless only what is known counts.
    """
    found = installer.program("codex")
    hooks = None
    was_used = has_run(installer.target("codex").path.parent)
    if found.path and was_used:
        hooks = read_hooks(found.path, installer.environ, Path.cwd(), timeout_s=timeout_s)
    if hooks is None:
        if not (was_used and is_known):
            yield Step(text="Codex runs hooks only after you trust them.", how=HOW_TO_TRUST)
        return
    if not hooks.hooks:
        yield Step(text=NOT_SEEN, how=HOW_TO_SEE)
    if hooks.skipped:
        events = ", ".join(f"{hook.event} ({hook.status})" for hook in hooks.skipped)
        text = f"Codex does not run these hooks before you trust them: {events}."
        yield Step(text=text, how=HOW_TO_TRUST)
    for warning in hooks.warnings:
        yield Step(text=f"Codex says: {warning}")


def hermes_steps(installer: Installer) -> Iterator[Step]:
    """Return what makes Hermes find the plugin."""
    environment = installer.hermes
    if environment is None:
        if installer.program("hermes").path:
            text = (
                "The Python of Hermes could not be found. Install Journeyman into the environment "
                "that Hermes runs in."
            )
            yield Step(text=text, command="pip install journeyman")
        return
    if not environment.is_plugin:
        text = (
            "Hermes finds the plugin only if Journeyman is installed in its environment. Install "
            "it there."
        )
        yield Step(text=text, command=environment.install_command)
    elif not environment.is_current:
        text = (
            f"Hermes' environment has Journeyman {environment.version}. Install this version "
            "there, too."
        )
        yield Step(text=text, command=environment.install_command)
