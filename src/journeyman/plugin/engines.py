"""Which agents of this machine can do the work of `run`, `jobs` and `review`, and which of them
does.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from journeyman.facade.finding import Finding
from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.host import Login
from journeyman.hosts.pages import PAGES
from journeyman.plugin.installation.installer import Installer
from journeyman.records.errors import BadSetting, JourneymanError
from journeyman.records.host import Host
from journeyman.settings import sqlite_path

OWN = "journeyman"
"""The name of the small loop, beside those of the hosts."""
ENGINES: tuple[str, ...] = (*PAGES, OWN)

_LOGINS: Mapping[Login, str] = {
    "yes": "logged in",
    "no": "not logged in",
    "unknown": "whether it is logged in shows with its first request",
}


def installed_hosts(environ: Mapping[str, str] = os.environ) -> list[Host]:
    """Return the hosts whose program is on the search path."""
    path = environ.get("PATH")
    return [name for name, page in PAGES.items() if shutil.which(page.program, path=path)]


def choose_engine(
    journeyman: Journeyman, folder: Path, environ: Mapping[str, str] = os.environ
) -> str:
    """Return what works in a folder: the agent of the last session in its project, else the only
    one that is installed, else that of the last session anywhere, else the small loop, if it has a
    model. Raise BadSetting if nothing can.
    """
    installed, settings = installed_hosts(environ), journeyman.settings
    for project in (journeyman.find_project(folder), None):
        engine = _last_engine(journeyman, project)
        if engine in installed or (engine == OWN and settings.model.name):
            return engine
        if len(installed) == 1:
            return installed[0]
    if settings.model.name or settings.model.base_url:
        return OWN
    if installed:
        raise BadSetting(
            f"Several agents are installed, and none has worked in {folder} yet. Choose one: "
            f"--with {' or '.join(installed)}"
        )
    ways = ", ".join(f"{page.title} ({page.install})" for page in PAGES.values())
    raise BadSetting(
        "There is no agent on the search path, and no model is configured. Install the agent that "
        f"you have a subscription or a key for: {ways}. Or name a model at an endpoint: journeyman "
        "config set model.base_url URL. Or try it with --model embedded."
    )


def _last_engine(journeyman: Journeyman, project: str | None) -> str:
    """Return what the last session of a project, or of all, was made with; nothing is created."""
    database = sqlite_path(journeyman.settings.database)
    if database is not None and not database.exists():
        return ""
    last = journeyman.sessions.list(project=project, subagents=False, bots=False, limit=1)
    return last[0].session.source.replace("_", "-") if last else ""


def engine_finding(installer: Installer, host: Host) -> Finding:
    """Return whether a host is ready to work."""
    page, found, what = PAGES[host], installer.program(host), f"engine: {host}"
    if not found.path:
        return Finding(what, "note", f"{page.program} is not on the search path.", page.install)
    login: Login = "no"
    if page.settings_folder(installer.environ).exists():
        login = page.login(found.path, installer.environ)
    text = f"{page.title} {found.version}".strip() + f" ({found.path}), {_LOGINS[login]}"
    if login == "no":
        return Finding(what, "note", text, page.log_in)
    return Finding(what, "ok", text)


def engine_findings(installer: Installer, journeyman: Journeyman) -> list[Finding]:
    """Return which agents are ready, and what would work in the current folder."""
    findings = [engine_finding(installer, host) for host in installed_hosts(installer.environ)]
    what = "run, jobs, review"
    try:
        engine = choose_engine(journeyman, Path.cwd(), installer.environ)
    except JourneymanError as error:
        return [*findings, Finding(what, "note", str(error))]
    titles: dict[str, str] = {
        name: f"{page.title}, with your own subscription or key" for name, page in PAGES.items()
    }
    found = titles.get(engine, f"the small loop with {journeyman.settings.model.name}")
    return [*findings, Finding(what, "ok", f"here by {found}")]
