"""The one place that reads settings: flags over `JOURNEYMAN_*` variables over `config.toml` in
the home over defaults.
"""

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from journeyman.records.errors import BadSetting
from journeyman.store.address import sqlite_url
from journeyman.templates.mining.trivial_tools import TRIVIAL_TOOLS

STYLES = ("auto", "text", "messages")
HOME_VARIABLE = "JOURNEYMAN_HOME"
EMBEDDED = "embedded"
"""The name of the model that is part of the program."""


class ModelSettings(Struct, frozen=True, kw_only=True):
    """Which model the agent asks. Without an address, a name means a model of OpenAI's."""

    name: str = ""
    base_url: str = ""
    api_key: str = ""
    context_length: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None

    def __repr__(self) -> str:
        """Without the key, which has no place in a log or a traceback."""
        return f"ModelSettings(name={self.name!r}, base_url={self.base_url!r})"


class AgentSettings(Struct, frozen=True, kw_only=True):
    """Limits of a turn, and where memory and skills are."""

    turns: int = 40
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    knowledge: str = ""


class OpeningSettings(Struct, frozen=True, kw_only=True):
    """How openings are presented: to every model, and to those that are named."""

    style: str = "auto"
    models: dict[str, str] = {}


class ReviewSettings(Struct, frozen=True, kw_only=True):
    """Whether and how often finished turns are reviewed in the background."""

    enabled: bool = False
    every_turns: int = 5
    every_calls: int = 15


class ConfirmSettings(Struct, frozen=True, kw_only=True):
    """Where confirmations are served, who is told of them, and with what credential one asks."""

    host: str = "127.0.0.1"
    port: int = 6000
    page_port: int = 6080
    hosts: tuple[str, ...] = ()
    page_hosts: tuple[str, ...] = ()
    page_url: str = ""
    rate_limit: int = 10
    policy: str = ""
    notify: tuple[str, ...] = ()
    url: str = ""
    token: str = ""
    approver_key: str = ""

    def __repr__(self) -> str:
        """Without the secrets, which have no place in a log or a traceback."""
        return f"ConfirmSettings(host={self.host!r}, port={self.port!r}, url={self.url!r})"


class JobsSettings(Struct, frozen=True, kw_only=True):
    """How jobs run: what they need of a model, who gets simple prompts, whose clock counts."""

    min_context: int = 64_000
    timezone: str = ""
    deliver: tuple[str, ...] = ()
    simple_model: str = ""
    simple_provider: str = ""
    simple_words: int = 28
    workers: int = 4

    def __repr__(self) -> str:
        """Without the addresses, which have secrets in them."""
        return f"JobsSettings(min_context={self.min_context!r}, timezone={self.timezone!r})"


class Settings(Struct, frozen=True, kw_only=True):
    """The settings in force."""

    home: Path
    database: str
    busy_timeout_s: float = 30.0
    trivial_tools: tuple[str, ...] = TRIVIAL_TOOLS
    model: ModelSettings = ModelSettings()
    agent: AgentSettings = AgentSettings()
    opening: OpeningSettings = OpeningSettings()
    review: ReviewSettings = ReviewSettings()
    confirm: ConfirmSettings = ConfirmSettings()
    jobs: JobsSettings = JobsSettings()
    providers: dict[str, ModelSettings] = {}
    """Other endpoints, by the name that a job calls them."""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("it is not a text")
    return value


def _names(value: Any) -> tuple[str, ...]:
    """A list of names: in a file as a list, in a variable with commas between them."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("it is not a list of names")
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def _style(value: Any) -> str:
    if value not in STYLES:
        raise ValueError("it is not a style")
    return str(value)


def _styles(value: Any) -> dict[str, str]:
    """Styles by model: in a file as a table, in a variable as name=style with commas between."""
    pairs = value if isinstance(value, dict) else dict(one.split("=") for one in _names(value))
    return {name.strip(): _style(style) for name, style in pairs.items()}


def _amount(value: Any) -> float:
    amount = float(value)
    if isinstance(value, bool) or not 0 <= amount < math.inf:
        raise ValueError("it is not an amount")
    return amount


def _count(value: Any) -> int:
    count = int(value)
    if isinstance(value, bool | float) or count < 1:
        raise ValueError("it is not a count from 1 on")
    return count


def _port(value: Any) -> int:
    port = int(value)
    if isinstance(value, bool | float) or not 0 <= port < 65_536:
        raise ValueError("it is not a port")
    return port


def _addresses(value: Any) -> tuple[str, ...]:
    """A list of addresses: in a file as a list, in a variable with blanks between them, because
    addresses may have commas in them.
    """
    return _names(value.split() if isinstance(value, str) else value)


def _switch(value: Any) -> bool:
    return value if isinstance(value, bool) else _SWITCHES[value.casefold()]


_SWITCHES = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class Setting(NamedTuple):
    """One setting: its key in config.toml, where `a.b` stands as `b` in the table `[a]`."""

    key: str
    read: Callable[[Any], Any]
    about: str
    also: str = ""
    """Another variable that sets it, where Journeyman's own does not."""

    @property
    def variable(self) -> str:
        return f"JOURNEYMAN_{self.key.upper().replace('.', '_')}"


SETTINGS = (
    Setting("database", _text, "the database's URL; default sqlite:///<home>/journeyman.db"),
    Setting("busy_timeout_s", _amount, "seconds to wait for a locked SQLite database; default 30"),
    Setting(
        "trivial_tools",
        _names,
        "a list of names: tools whose calls teach nothing; default clarify, memory, TodoWrite, …",
    ),
    Setting("model.name", _text, "the model that the agent asks; default embedded"),
    Setting("model.base_url", _text, "the address of an endpoint that speaks OpenAI's chat API"),
    Setting("model.api_key", _text, "the key for that endpoint; default OPENAI_API_KEY"),
    Setting("model.context_length", _count, "the model's window in tokens; default: found out"),
    Setting("model.max_tokens", _count, "how long one reply may be, in tokens"),
    Setting("model.temperature", _amount, "how much chance there is in replies; default: theirs"),
    Setting("agent.turns", _count, "requests to the model in one turn at most; default 40"),
    Setting("agent.tokens", _count, "tokens in one turn at most; default no limit"),
    Setting("agent.cost_usd", _amount, "dollars in one turn at most; default no limit"),
    Setting("agent.seconds", _amount, "seconds for one turn at most; default no limit"),
    Setting("agent.knowledge", _text, "the folder with memories/ and skills/; default the home"),
    Setting(
        "opening.style",
        _style,
        "auto, text or messages: how openings are presented; default auto",
    ),
    Setting(
        "opening.models",
        _styles,
        'a table of styles by model, such as "qwen3:4b" = "messages"; default none',
    ),
    Setting("review.enabled", _switch, "true reviews finished turns; default false"),
    Setting("review.every_turns", _count, "review after so many turns; default 5"),
    Setting("review.every_calls", _count, "or after so many calls; default 15"),
    Setting(
        "confirm.host",
        _text,
        "the address on which confirmations are served; default 127.0.0.1",
        "CONFIRMATION_HOST",
    ),
    Setting("confirm.port", _port, "the port for agents; default 6000", "CONFIRMATION_PORT"),
    Setting("confirm.page_port", _port, "the port of the page for people; default 6080"),
    Setting(
        "confirm.hosts",
        _names,
        "a list of names: other names under which agents may ask, as name:port",
    ),
    Setting(
        "confirm.page_hosts",
        _names,
        "a list of names: other names under which browsers may open the page, as name:port",
    ),
    Setting("confirm.page_url", _text, "the page's address in notices; default its host and port"),
    Setting(
        "confirm.rate_limit",
        _count,
        "requests for one action in an hour at most; default 10",
        "CONFIRMATION_RATE_LIMIT",
    ),
    Setting("confirm.policy", _text, "the file with the policy; default <home>/confirm.toml"),
    Setting(
        "confirm.notify",
        _addresses,
        "a list of addresses that apprise knows: who is told, the first that works",
    ),
    Setting("confirm.url", _text, "where the service is asked; default http://<host>:<port>"),
    Setting("confirm.token", _text, "the agent's token: with it, the gate asks the service"),
    Setting("confirm.approver_key", _text, "the approver's key, for approve and deny"),
    Setting("jobs.min_context", _count, "the smallest window that a job needs; default 64000"),
    Setting("jobs.timezone", _text, "whose clock schedules go by; default this machine's"),
    Setting(
        "jobs.deliver",
        _addresses,
        "a list of places that answers go to: terminal, file:/path, or an address of apprise's",
    ),
    Setting("jobs.simple_model", _text, "the model for simple prompts; default: the usual one"),
    Setting("jobs.simple_provider", _text, "its provider; default: the usual one"),
    Setting("jobs.simple_words", _count, "so many words a simple prompt has at most; default 28"),
    Setting("jobs.workers", _count, "how many jobs may run side by side; default 4"),
)
PROVIDERS = "providers"
"""The table of other endpoints: each is a table like `model`, without variables of its own."""
_TABLES: dict[str, type[Struct]] = {
    "model": ModelSettings,
    "agent": AgentSettings,
    "opening": OpeningSettings,
    "review": ReviewSettings,
    "confirm": ConfirmSettings,
    "jobs": JobsSettings,
}
_SECRET = (
    *("model.api_key", "confirm.token", "confirm.approver_key", "confirm.notify"),
    "jobs.deliver",
)
"""Settings whose values are not to be shown."""
_BY_KEY = {setting.key: setting for setting in SETTINGS}


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
    values: dict[str, Any] = {}
    written = _from_file(file)
    providers = _providers(written.pop(PROVIDERS, {}), f"{file}")
    for key, value in _flat(written):
        values[key] = _checked(key, value, f"{file}")
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
    nested = _nested(values)
    for table, kind in _TABLES.items():
        nested[table] = kind(**nested.get(table, {}))
    return Settings(home=folder, providers=providers, **nested)


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


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        table, _, name = key.rpartition(".")
        (nested.setdefault(table, {}) if table else nested)[name] = value
    return nested


def _checked(key: str, value: Any, where: str) -> Any:
    setting = _BY_KEY.get(key)
    if setting is None:
        known = ", ".join(_BY_KEY)
        raise BadSetting(
            f"{where} sets {key!r}, which is not a setting. The settings are: {known}."
        )
    try:
        return setting.read(value)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        shown = "***" if key in _SECRET else repr(value)
        raise BadSetting(
            f"{where} sets {key} to {shown}, which cannot be used: it is {setting.about}."
        ) from error
