"""Installs Journeyman into hosts and removes it: plans a change for a person to see, carries it
out, and records it.
"""

import os
import platform
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from journeyman.confirm.service_options import url_host
from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.installation import file_change
from journeyman.hosts.installation.file_change import FileChange
from journeyman.hosts.installation.hermes_environment import HermesEnvironment, find_environment
from journeyman.hosts.installation.programs import (
    INSTALLABLE,
    SERVICE,
    FoundProgram,
    find_program,
)
from journeyman.hosts.installation.record import (
    FileRecord,
    Record,
    copy_path,
    delete_record,
    read_record,
    write_private,
    write_record,
)
from journeyman.hosts.installation.service_unit import Manager, usual_manager
from journeyman.hosts.installation.targets import (
    PARTS,
    Surroundings,
    Target,
    host_target,
    service_target,
    unit_of,
)
from journeyman.records.errors import JourneymanError, OutsideProblem, WrongInput
from journeyman.records.host import Host
from journeyman.settings import ConfirmSettings
from journeyman.version import __version__

if TYPE_CHECKING:
    from journeyman.confirm.administration import Administration

NAMES: tuple[str, ...] = (*INSTALLABLE, SERVICE)
ADD_APPROVER = "journeyman confirm approver add NAME"
_BY = "hosts install"


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

    def target(
        self, name: str, parts: Collection[str] = PARTS, manager: Manager | None = None
    ) -> Target:
        """Return what is installed under a name. Raise WrongInput."""
        if name == SERVICE:
            return service_target(self.around, manager or self.manager)
        return host_target(known_host(name), self.around, parts, self.hermes)

    @property
    def manager(self) -> Manager:
        """The manager of the service that is installed, or else that of this system."""
        record = read_record(self.home, SERVICE)
        if record is None or record.file is None:
            return usual_manager()
        return "launchd" if record.file.path.endswith(".plist") else "systemd"

    def plan(self, name: str, parts: Sequence[str] = PARTS, manager: Manager | None = None) -> Plan:
        """Plan an installation, or the update of one. Raise OutsideProblem if the host's file
        cannot be edited, and WrongInput if it was installed into another file.
        """
        if not parts:
            raise WrongInput(
                f"No part is left to install into {name}. To take Journeyman out: journeyman hosts "
                f"remove {name}"
            )
        target, record = self.target(name, parts, manager), read_record(self.home, name)
        file = record.file if record else None
        if file is not None and file.path != str(target.path):
            raise WrongInput(
                f"Journeyman is installed in {file.path}; now {target.path} would be changed. "
                f"Remove it there first: journeyman hosts remove {name}"
            )
        change = file_change.plan_installation(target.path, target.editor, file)
        return Plan(target=target, change=change, record=record, parts=tuple(parts))

    def is_needed(self, plan: Plan) -> bool:
        """Return whether an installation would change anything. What others changed in the file
        does not matter.
        """
        record = plan.record
        if plan.change.is_needed or record is None:
            return True
        if msgspec.structs.replace(self._record(plan, record), file=record.file) != record:
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

    def install(self, plan: Plan) -> Record:
        """Carry out a plan. The copy and the record are written first, so that an installation that
        is interrupted can be removed. Raise OutsideProblem; nothing is changed then.
        """
        target = plan.target
        agent, token = self._confirmation_token(plan)
        record = self._record(plan, Record(host=target.name, agent=agent, token=token))
        try:
            write_record(self.home, record)
            if plan.change.original is not None:
                write_private(self._copy(target), plan.change.original)
            if plan.change.is_needed:
                file_change.apply(plan.change)
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
        return record

    def _copy(self, target: Target) -> Path:
        return copy_path(self.home, target.name, target.path.name)

    def _record(self, plan: Plan, base: Record) -> Record:
        """Return the record of a plan; agent and token are those of `base`."""
        gate_tools = self.around.settings.gate_tools
        return Record(
            host=plan.target.name,
            token=base.token,
            agent=base.agent,
            parts=plan.parts if plan.target.name != SERVICE else (),
            gate_tools=gate_tools if plan.target.name != SERVICE else (),
            version=__version__,
            program=plan.target.program,
            file=file_change.file_record(plan.change, self._copy(plan.target)),
        )

    def _undo(self, plan: Plan, record: Record) -> None:
        """Undo what precedes a change that failed."""
        if plan.record is not None:
            write_record(self.home, plan.record)
        else:
            self._copy(plan.target).unlink(missing_ok=True)
            delete_record(self.home, record.host)
        if record.agent and (plan.record is None or plan.record.agent != record.agent):
            self._revoke(record.agent)

    def plan_removal(self, name: str) -> Plan:
        """Plan what takes Journeyman out of a host. Raise OutsideProblem."""
        record = read_record(self.home, name)
        target = self.target(name)
        file: FileRecord | None = record.file if record else None
        path = Path(file.path) if file else target.path
        change = file_change.plan_removal(path, target.editor, file)
        return Plan(target=target, change=change, record=record)

    def remove(self, plan: Plan) -> tuple[str, ...]:
        """Carry out the plan of a removal; return what else there is to know. Raise OutsideProblem;
        nothing is changed then.
        """
        name, record = plan.target.name, plan.record
        unit = unit_of(self.around, self.manager) if name == SERVICE else None
        if unit is not None and unit.enabled.is_symlink():
            raise OutsideProblem(
                f"The service is enabled. Nothing was changed. Stop it first: {unit.stop}"
            )
        notes = []
        if plan.change.is_needed:
            edited = self._edited_content(plan)
            if edited is not None:
                kept = self._copy(plan.target).with_suffix(".edited")
                write_private(kept, edited)
                notes.append(f"The file was edited; it is kept as {kept}.")
            file_change.apply(plan.change)
        if record is not None:
            if record.agent and not self._revoke(record.agent):
                notes.append(
                    f"The token of the agent {record.agent} could not be revoked. Try: journeyman "
                    f"confirm token revoke {record.agent}"
                )
            self._copy(plan.target).unlink(missing_ok=True)
            delete_record(self.home, name)
            self._pass_on(plan.change.folders)
        return tuple(notes)

    def _pass_on(self, folders: Sequence[str]) -> None:
        """Let what is installed in folders that are still there remove them later."""
        left = [folder for folder in folders if Path(folder).exists()]
        for name in NAMES:
            record = read_record(self.home, name)
            if record is None or record.file is None:
                continue
            inside = [folder for folder in left if record.file.path.startswith(f"{folder}/")]
            if inside:
                kept = (*record.file.folders, *inside)
                file = msgspec.structs.replace(record.file, folders=tuple(dict.fromkeys(kept)))
                write_record(self.home, msgspec.structs.replace(record, file=file))

    def _edited_content(self, plan: Plan) -> bytes | None:
        """The content of a file of Journeyman's own that someone has edited."""
        file = plan.record.file if plan.record else None
        if file is None or not plan.target.editor.owns_file:
            return None
        before = plan.change.before
        return None if file_change.is_unchanged(file, before) else before

    def _administration(self) -> "Administration | None":
        """Confirmations on this machine; None if they are served elsewhere or not installed."""
        return self._journeyman.confirmations if self.can_confirm else None

    @property
    def where_to_decide(self) -> str:
        """Where people decide on held calls, as a sentence."""
        confirm = self._journeyman.settings.confirm
        if confirm.url and not confirm.page_url:
            return f"People decide on held calls on {self.around.page}."
        return f"People decide on held calls at {self.around.page}, while `journeyman serve` runs."

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
        if host == SERVICE or "gate" not in plan.parts:
            return "", ""
        administration = self._administration()
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
    for host in INSTALLABLE:
        if host == name:
            return host
    raise WrongInput(f"There is no host {name!r}. Choose from: {', '.join(NAMES)}.")
