"""The one place that reads settings: flags over `JOURNEYMAN_*` variables over `config.toml` in
the home over defaults.
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import Meta, Struct

from journeyman.agent.tools.tool import Resources
from journeyman.records.errors import BadSetting
from journeyman.store.sqlite_file import sqlite_url
from journeyman.templates.defaults import TRIVIAL_TOOLS

RESOURCES = Resources()
HARMLESS = (
    *("ls", "cat", "head", "tail", "wc", "grep", "rg", "pwd", "echo", "which", "file", "stat"),
    *("du", "df", "tree", "diff", "cmp", "basename", "dirname", "date", "true", "sha256sum"),
    *("git status", "git diff", "git log", "git show", "git branch --list", "git ls-files"),
    *("git blame", "git rev-parse", "git remote -v"),
)
Style = Literal["auto", "text", "messages"]
STYLES: tuple[str, ...] = get_args(Style)
Count = Annotated[int, Meta(ge=1)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
Amount = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
HOME_VARIABLE = "JOURNEYMAN_HOME"
EMBEDDED = "embedded"
"""The name of the model that is part of the program."""


class _WithSecrets(Struct, frozen=True, kw_only=True):
    """Settings of which some have no place in a log or a traceback; addresses have secrets too."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class ModelSettings(_WithSecrets, frozen=True, kw_only=True):
    """Which model the agent asks. Without an address, a name means a model of OpenAI's."""

    name: str = ""
    base_url: str = ""
    api_key: str = ""
    context_length: Count | None = None
    max_tokens: Count | None = None
    temperature: Amount | None = None


class AgentSettings(Struct, frozen=True, kw_only=True):
    """Limits of a turn, where memory and skills are, what commands may use and do, and what is
    kept for undo.
    """

    turns: Count = 40
    tokens: Count | None = None
    cost_usd: Amount | None = None
    seconds: Amount | None = None
    knowledge: str = ""
    network: Literal["off", "ask", "on"] = "ask"
    confine: bool = True
    harmless: tuple[str, ...] = HARMLESS
    memory_mb: Count | None = RESOURCES.memory_mb
    processes: Count = RESOURCES.processes
    file_mb: Count = RESOURCES.file_mb
    written_mb: Count = RESOURCES.written_mb
    cpu_s: Count = RESOURCES.cpu_s
    undo: bool = True
    undo_mb: Count = 1024
    undo_days: Count = 14


class OpeningSettings(Struct, frozen=True, kw_only=True):
    """How openings are presented: to every model, and to those that are named."""

    style: Style = "auto"
    models: dict[str, Style] = {}


class ReviewSettings(Struct, frozen=True, kw_only=True):
    """Whether and how often finished turns are reviewed in the background."""

    enabled: bool = False
    every_turns: Count = 5
    every_calls: Count = 15


class ConfirmSettings(_WithSecrets, frozen=True, kw_only=True):
    """Where confirmations are served, who is told of them, and with what credential one asks."""

    host: str = "127.0.0.1"
    port: Port = 6000
    page_port: Port = 6080
    hosts: tuple[str, ...] = ()
    page_hosts: tuple[str, ...] = ()
    page_url: str = ""
    rate_limit: Count = 10
    policy: str = ""
    notify: tuple[str, ...] = ()
    url: str = ""
    token: str = ""
    approver_key: str = ""


class JobsSettings(_WithSecrets, frozen=True, kw_only=True):
    """How jobs run: what they need of a model, who gets simple prompts, whose clock counts."""

    min_context: Count = 64_000
    timezone: str = ""
    deliver: tuple[str, ...] = ()
    simple_model: str = ""
    simple_provider: str = ""
    simple_words: Count = 28
    workers: Count = 4


class Settings(Struct, frozen=True, kw_only=True):
    """The settings in force."""

    home: Path
    database: str
    busy_timeout_s: Amount = 30.0
    trivial_tools: tuple[str, ...] = TRIVIAL_TOOLS
    model: ModelSettings = ModelSettings()
    agent: AgentSettings = AgentSettings()
    opening: OpeningSettings = OpeningSettings()
    review: ReviewSettings = ReviewSettings()
    confirm: ConfirmSettings = ConfirmSettings()
    jobs: JobsSettings = JobsSettings()
    providers: dict[str, ModelSettings] = {}
    """Other endpoints, by the name that a job calls them."""


class Setting(NamedTuple):
    """One setting: its key in config.toml, where `a.b` stands as `b` in the table `[a]`."""

    key: str
    about: str
    also: str
    """Another variable that sets it, where Journeyman's own does not."""

    @property
    def variable(self) -> str:
        return f"JOURNEYMAN_{self.key.upper().replace('.', '_')}"


_ABOUT = """\
database              the database's URL; default sqlite:///<home>/journeyman.db
busy_timeout_s        seconds to wait for a locked SQLite database; default 30
trivial_tools         a list of names: tools whose calls teach nothing; default clarify, memory, …
model.name            the model that the agent asks; default embedded
model.base_url        the address of an endpoint that speaks OpenAI's chat API
model.api_key         the key for that endpoint; default OPENAI_API_KEY
model.context_length  the model's window in tokens; default: found out
model.max_tokens      how long one reply may be, in tokens
model.temperature     how much chance there is in replies; default: theirs
agent.turns           requests to the model in one turn at most; default 40
agent.tokens          tokens in one turn at most; default no limit
agent.cost_usd        dollars in one turn at most; default no limit
agent.seconds         seconds for one turn at most; default no limit
agent.knowledge       the folder with memories/ and skills/; default the home
agent.network         off, ask or on: the network for commands; default ask
agent.confine         false runs commands with your rights; default true
agent.harmless        a list of how commands begin that need no question where nothing confines them
agent.memory_mb       memory for a command in MB; default half of the machine's
agent.processes       processes that a command may start; default 500
agent.file_mb         the largest file a command may write in MB; default 1024
agent.written_mb      MB that a command may write in all; default 10240
agent.cpu_s           processor time for a command in seconds; default 3600
agent.undo            true keeps the workspace before a turn changes it; default true
agent.undo_mb         largest workspace that is kept, in MB; default 1024
agent.undo_days       days for which a turn can be undone; default 14
opening.style         auto, text or messages: how openings are presented; default auto
opening.models        a table of styles by model, such as "qwen3:4b" = "messages"; default none
review.enabled        true reviews finished turns; default false
review.every_turns    review after so many turns; default 5
review.every_calls    or after so many calls; default 15
confirm.host          the address on which confirmations are served; default 127.0.0.1
confirm.port          the port for agents; default 6000
confirm.page_port     the port of the page for people; default 6080
confirm.hosts         a list of names: other names under which agents may ask, as name:port
confirm.page_hosts    a list of names: others under which browsers may open the page, as name:port
confirm.page_url      the page's address in notices; default its host and port
confirm.rate_limit    requests for one action in an hour at most; default 10
confirm.policy        the file with the policy; default <home>/confirm.toml
confirm.notify        a list of addresses that apprise knows: who is told, the first that works
confirm.url           where the service is asked; default http://<host>:<port>
confirm.token         the agent's token: with it, the gate asks the service
confirm.approver_key  the approver's key, for approve and deny
jobs.min_context      the smallest window that a job needs; default 64000
jobs.timezone         whose clock schedules go by; default this machine's
jobs.deliver          a list of places for answers: terminal, file:/path, or an address of apprise's
jobs.simple_model     the model for simple prompts; default: the usual one
jobs.simple_provider  its provider; default: the usual one
jobs.simple_words     longest prompt, in words, that counts as simple; default 28
jobs.workers          how many jobs may run side by side; default 4
"""
"""Every setting, and what it is."""
_ALSO = ("confirm.host", "confirm.port", "confirm.rate_limit")
SETTINGS = tuple(
    Setting(key, about, key.upper().replace("CONFIRM.", "CONFIRMATION_") if key in _ALSO else "")
    for key, about in (line.split(maxsplit=1) for line in _ABOUT.splitlines())
)
PROVIDERS = "providers"
"""The table of other endpoints: each is a table like `model`, without variables of its own."""
_ADDRESSES = ("confirm.notify", "jobs.deliver")
"""In a variable with blanks between them, because addresses may have commas in them."""
_SECRET = ("model.api_key", "confirm.token", "confirm.approver_key", *_ADDRESSES)
"""Settings whose values are not to be shown."""
_TABLES: dict[str, type[Struct]] = {
    field.name: type(field.default)
    for field in msgspec.structs.fields(Settings)
    if isinstance(field.default, Struct)
}
_KINDS = {field.name: field.type for field in msgspec.structs.fields(Settings)} | {
    f"{table}.{field.name}": field.type
    for table, kind in _TABLES.items()
    for field in msgspec.structs.fields(kind)
}
_BY_KEY = {setting.key: setting for setting in SETTINGS}
_SWITCHES = {"yes": True, "on": True, "no": False, "off": False}


def load(
    environ: Mapping[str, str],
    user_home: Path,
    *,
    home: Path | str | None = None,
    database: str | None = None,
) -> Settings:
    """The settings for this run. Raises BadSetting, naming the setting and where it stands."""
    folder = Path(home or environ.get(HOME_VARIABLE) or user_home / ".journeyman")
    try:
        folder = folder.expanduser().absolute()
    except RuntimeError as error:
        raise BadSetting(f"The home {folder} cannot be found: {error}") from error
    file = folder / "config.toml"
    written = _from_file(file)
    providers = _providers(written.pop(PROVIDERS, {}), f"{file}")
    values = {key: _checked(key, value, f"{file}") for key, value in _flat(written)}
    for setting in SETTINGS:
        for variable in filter(None, (setting.also, setting.variable)):
            if text := environ.get(variable):
                values[setting.key] = _checked(setting.key, text, variable)
    if database is not None:
        values["database"] = database
    values.setdefault("database", sqlite_url(folder / "journeyman.db"))
    if not values.get("model.api_key") and not values.get("model.base_url"):
        # A key is never sent anywhere but to the service whose variable it stands in.
        values["model.api_key"] = environ.get("OPENAI_API_KEY", "")
    tables: dict[str, dict[str, Any]] = {name: {} for name in ("", *_TABLES)}
    for key, value in values.items():
        table, _, name = key.rpartition(".")
        tables[table][name] = value
    nested: dict[str, Any] = {table: kind(**tables[table]) for table, kind in _TABLES.items()}
    return Settings(home=folder, providers=providers, **nested, **tables[""])


def _providers(tables: Any, where: str) -> dict[str, ModelSettings]:
    """The other endpoints: tables below `[providers]`, whose keys are those of `[model]`."""
    if not isinstance(tables, dict) or not all(isinstance(one, dict) for one in tables.values()):
        raise BadSetting(
            f"{where} sets {PROVIDERS!r} to something else than tables. Write [providers.NAME], "
            "and below it the keys of [model]."
        )
    return {
        name: ModelSettings(
            **{
                key: _checked(f"model.{key}", value, f"[{PROVIDERS}.{name}] in {where}")
                for key, value in table.items()
            }
        )
        for name, table in tables.items()
    }


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting(
            f"The settings in {path} cannot be read: {error}. Mend the file."
        ) from error


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Keys with the names of their tables before them."""
    for key, value in values.items():
        if isinstance(value, Mapping) and f"{before}{key}" not in _BY_KEY:
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _read(key: str, value: Any) -> Any:
    """A value as the setting has it; in a variable everything is a text, lists with commas."""
    kind = _KINDS[key]
    if isinstance(value, str) and kind is not str:
        if kind == tuple[str, ...]:
            value = value.split(None if key in _ADDRESSES else ",")
        elif key == "opening.models":
            pairs = (one.split("=") for one in value.split(","))
            value = {name.strip(): style.strip() for name, style in pairs}
        else:
            value = _SWITCHES.get(value.casefold(), value) if kind is bool else value.strip()
    found = msgspec.convert(value, kind, strict=False)
    if isinstance(found, tuple):
        return tuple(dict.fromkeys(name.strip() for name in found if name.strip()))
    return found


def _checked(key: str, value: Any, where: str) -> Any:
    setting = _BY_KEY.get(key)
    if setting is None:
        known = ", ".join(_BY_KEY)
        raise BadSetting(f"{where} sets {key!r}, which is not a setting; there are: {known}.")
    try:
        return _read(key, value)
    except ValueError as error:
        shown = "***" if key in _SECRET else repr(value)
        raise BadSetting(
            f"{where} sets {key} to {shown}, which cannot be used: it is {setting.about}."
        ) from error
