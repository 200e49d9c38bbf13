"""Installs Journeyman into hosts and removes it: plans a change for a person to see, carries it
out, and records it.
"""

import os
import platform
import re
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from journeyman.confirm.service_options import url_host
from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.host import Plug
from journeyman.hosts.programs import FoundProgram, find_program, run_quietly
from journeyman.plugin.installation import file_change
from journeyman.plugin.installation.file_change import FileChange
from journeyman.plugin.installation.hermes_environment import HermesEnvironment, find_environment
from journeyman.plugin.installation.record import (
    Record,
    copy_path,
    delete_record,
    read_record,
    write_private,
    write_record,
)
from journeyman.plugin.installation.targets import (
    PARTS,
    HooksTarget,
    OwnFile,
    Surroundings,
    Target,
    hermes_run_plugin,
    host_target,
)
from journeyman.records.errors import JourneymanError, OutsideProblem, WrongInput
from journeyman.records.host import HOSTS, Host
from journeyman.settings import ConfirmSettings
from journeyman.version import __version__

if TYPE_CHECKING:
    from journeyman.confirm.administration import Administration

ADD_APPROVER = "journeyman confirm approver add NAME"
_BY = "hosts install"
_COMMAND_S = 60.0


class Plan(Struct, frozen=True, kw_only=True):
    """A change that a person can agree to. `record` is that of an earlier installation."""

    target: Target
    change: FileChange
    record: Record | None = None
    parts: tuple[str, ...] = ()

    @property
    def is_installed(self) -> bool:
        """Whether there is something to remove."""
        return self.record is not None or self.change.is_needed


class Installer:
    """Installs into the hosts of one user, for one home of Journeyman. `python` is the interpreter
    that hosts call.
    """

    def __init__(
        self,
        journeyman: Journeyman,
        environ: Mapping[str, str] = os.environ,
        python: str = sys.executable,
    ) -> None:
        self._journeyman = journeyman
        settings = journeyman.settings
        self.environ = environ
        self.around = Surroundings(
            home=settings.home,
            python=python,
            environ=environ,
            settings=settings.hosts,
            page=_page(settings.confirm),
        )
        self._programs: dict[Host, FoundProgram] = {}

    @property
    def home(self) -> Path:
        return self.around.home

    def program(self, host: Host) -> FoundProgram:
        """Return a host's program on this machine."""
        if host not in self._programs:
            self._programs[host] = find_program(host, self.environ)
        found = self._programs[host]
        if host == "hermes" and self.hermes is not None:
            return FoundProgram(path=found.path, version=self.hermes.hermes)
        return found

    @cached_property
    def hermes(self) -> HermesEnvironment | None:
        """The Python environment of Hermes, if its program is found."""
        path = find_program("hermes", self.environ).path
        return find_environment(path, self.environ) if path else None

    def target(self, name: str, parts: Collection[str] = PARTS) -> Target:
        """Return what is installed into a host. Raise WrongInput for another name."""
        host = known_host(name)
        is_hermes = host == "hermes"
        program = self.program(host).path if is_hermes else ""
        return host_target(host, self.around, parts, program, self.hermes if is_hermes else None)

    def plug(self, host: str, parts: Sequence[str], run: str, folder: Path) -> Plug:
        """Return what a host needs for one run, beside what is installed in it. A plugin is written
        into `folder`.
        """
        if host == "hermes":
            plugin = folder / "journeyman_hermes.py"
            plugin.write_bytes(hermes_run_plugin(self.around.settings))
            return Plug(run=run, plugin=str(plugin))
        target = self.target(host, parts) if parts else None
        if isinstance(target, HooksTarget):
            return Plug(run=run, hooks=target.wanted)
        if isinstance(target, OwnFile):
            plugin = folder / target.path.name
            plugin.write_bytes(target.content)
            return Plug(run=run, plugin=str(plugin))
        return Plug(run=run)

    def plan(self, name: str, parts: Sequence[str] = PARTS) -> Plan:
        """Plan an installation, or the update of one. Raise OutsideProblem if the host's file
        cannot be edited, and WrongInput if it was installed into another file.
        """
        if not parts:
            raise WrongInput(
                f"No part is left to install into {name}. To take Journeyman out: journeyman hosts "
                f"remove {name}"
            )
        target, record = self.target(name, parts), read_record(self.home, name)
        file = record.file if record else None
        if file is not None and file.path != str(target.path):
            raise WrongInput(
                f"Journeyman is installed in {file.path}; now {target.path} would be changed. "
                f"Remove it there first: journeyman hosts remove {name}"
            )
        change = target.plan_installation(file)
        return Plan(target=target, change=change, record=record, parts=tuple(parts))

    def is_needed(self, plan: Plan) -> bool:
        """Return whether an installation would change anything. What others changed in the file
        does not matter.
        """
        record = plan.record
        if plan.change.is_needed or record is None:
            return True
        if replace(self._record(plan, record), file=record.file) != record:
            return True
        return self.can_confirm and bool(record.agent) and record.agent not in self._agents()

    @property
    def can_confirm(self) -> bool:
        """Whether confirmations are served by this installation. The database is not opened."""
        if self._journeyman.settings.confirm.url:
            return False
        try:
            import journeyman.confirm.administration  # noqa: PLC0415, F401 - an optional extra
        except ImportError:
            return False
        return True

    def install(self, plan: Plan) -> None:
        """Carry out a plan. The copy and the record are written first, so that an installation that
        is interrupted can be removed. Raise OutsideProblem; nothing is changed then.
        """
        target, change = plan.target, plan.change
        agent, token = self._confirmation_token(plan)
        record = self._record(plan, Record(host=target.name, agent=agent, token=token))
        try:
            write_record(self.home, record)
            if change.original is not None:
                write_private(self._copy(target), change.original)
            self._apply(change)
            if change.command:
                after = file_change.read_file(change.path)
                done = replace(plan, change=replace(change, after=after))
                write_record(self.home, self._record(done, record))
        except (JourneymanError, OSError) as error:
            self._undo(plan, record)
            if isinstance(error, OSError):
                raise OutsideProblem(
                    f"The record of the installation cannot be written to {self.home}: {error}. "
                    "Nothing was changed."
                ) from error
            raise
        if plan.record is not None and plan.record.agent not in ("", agent):
            self._revoke(plan.record.agent)

    def _apply(self, change: FileChange) -> None:
        if not change.command:
            if change.is_needed:
                file_change.apply(change)
            return
        if run_quietly(change.command, self.environ, timeout_s=_COMMAND_S) is None:
            raise OutsideProblem(
                f"`{shlex.join(change.command)}` failed. Nothing was changed. Run it yourself to "
                f"see why, or edit plugins.enabled in {change.path} by hand; then run this command "
                "again."
            )

    def _copy(self, target: Target) -> Path:
        return copy_path(self.home, target.name, target.path.name)

    def _record(self, plan: Plan, base: Record) -> Record:
        """Return the record of a plan; agent and token are those of `base`."""
        return Record(
            host=plan.target.name,
            token=base.token,
            agent=base.agent,
            parts=plan.parts,
            gate_tools=self.around.settings.gate_tools,
            version=__version__,
            program=plan.target.program,
            file=file_change.file_record(plan.change, self._copy(plan.target)),
        )

    def _undo(self, plan: Plan, record: Record) -> None:
        """Undo what precedes a change that failed."""
        if plan.record is not None:
            write_record(self.home, plan.record)
        else:
            delete_record(self.home, record.host)
        if record.agent and (plan.record is None or plan.record.agent != record.agent):
            self._revoke(record.agent)

    def plan_removal(self, name: str) -> Plan:
        """Plan what takes Journeyman out of a host. Raise OutsideProblem."""
        record, target = read_record(self.home, name), self.target(name)
        change = target.plan_removal(record.file if record else None)
        return Plan(target=target, change=change, record=record)

    def remove(self, plan: Plan) -> tuple[str, ...]:
        """Carry out the plan of a removal; return what else there is to know. Raise OutsideProblem;
        nothing is changed then.
        """
        record = plan.record
        self._apply(plan.change)
        if record is None:
            return ()
        delete_record(self.home, record.host)
        if not record.agent or self._revoke(record.agent):
            return ()
        return (
            f"The token of the agent {record.agent} could not be revoked. Try: journeyman confirm "
            f"token revoke {record.agent}",
        )

    def _administration(self) -> "Administration | None":
        """Confirmations on this machine; None if they are served elsewhere or not installed."""
        return self._journeyman.confirmations if self.can_confirm else None

    @property
    def where_to_decide(self) -> str:
        """Where people decide on held calls, as a sentence."""
        return f"People decide on held calls at {self.around.page}, while the service runs."

    @property
    def has_approver(self) -> bool:
        """Whether there is a person who may decide on confirmations."""
        administration = self._administration()
        known = administration.credentials("approver") if administration else ()
        return any(not approver.revoked_at for approver in known)

    def _agents(self) -> set[str]:
        """The names of the agents whose tokens are valid."""
        administration = self._administration()
        known = administration.credentials("agent") if administration else ()
        return {agent.name for agent in known if not agent.revoked_at}

    def _confirmation_token(self, plan: Plan) -> tuple[str, str]:
        """Return the name and the token with which the host requests confirmations: those that it
        has, or new ones. Where another machine uses the same database, the name is that of host
        and machine.
        """
        host = plan.target.name
        administration = self._administration() if "gate" in plan.parts else None
        if administration is None:
            return "", ""
        agents = self._agents()
        if plan.record is not None and plan.record.token and plan.record.agent in agents:
            return plan.record.agent, plan.record.token
        name = host
        if name in agents:
            node = re.sub(r"[^A-Za-z0-9.-]", "", platform.node())[:40] or "this-machine"
            name = f"{host}@{node}"
            if name in agents:  # of an installation whose record was lost
                administration.revoke_credential("agent", name, by=_BY)
        _, token = administration.add_agent(name, by=_BY)
        return name, token

    def _revoke(self, agent: str) -> bool:
        administration = self._administration()
        if administration is None:
            return False
        with suppress(WrongInput):  # revoked already
            try:
                administration.revoke_credential("agent", agent, by=_BY)
            except OutsideProblem:
                return False
        return True


def _page(confirm: ConfirmSettings) -> str:
    """Return where people decide on held calls: an address, or which service's page."""
    if confirm.url and not confirm.page_url:
        return f"the page of the service at {confirm.url}"
    return confirm.page_url.rstrip("/") or f"http://{url_host(confirm.host)}:{confirm.page_port}"


def known_host(name: str) -> Host:
    """Return the name of a host. Raise WrongInput for another."""
    for host in HOSTS:
        if host == name:
            return host
    raise WrongInput(f"There is no host {name!r}. Choose from: {', '.join(HOSTS)}.")
