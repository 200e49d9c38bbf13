"""The settings: their records, their descriptions, and the conversion of a value to its type."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_origin
from urllib.parse import quote, unquote

import msgspec
from msgspec import Meta, Struct

from journeyman.records.defaults import BUDGET_TOKENS, TRIVIAL_TOOLS
from journeyman.records.fact import FactKind

Count = Annotated[int, Meta(ge=1)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
Amount = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
_SQLITE = "sqlite:///"
HOME_VARIABLE = "JOURNEYMAN_HOME"
OPENAI = "https://api.openai.com/v1"
EMBEDDED = "embedded"
"""The name of the built-in model."""


class _WithSecrets(Struct, frozen=True, kw_only=True):
    """Settings that must not appear in a log or a traceback; addresses can contain secrets too."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class ModelSettings(_WithSecrets, frozen=True, kw_only=True):
    """The model that agents use. A name without `base_url` is a model of OpenAI."""

    name: str = ""
    base_url: str = ""
    api_key: str = ""
    context_length: Count | None = None
    max_tokens: Count | None = None
    temperature: Amount | None = None


class AgentSettings(Struct, frozen=True, kw_only=True):
    """Limits of a turn, the folder of memory and skills, what commands may use and do, and how
    much is stored for undo.
    """

    turns: Count = 40
    tokens: Count | None = None
    cost_usd: Amount | None = None
    seconds: Amount | None = None
    knowledge: str = ""
    network: Literal["off", "ask", "on"] = "ask"
    confine: bool = True
    memory_mb: Count | None = None
    processes: Count = 500
    file_mb: Count = 1_024
    cpu_s: Count = 3_600
    undo: bool = True
    undo_mb: Count = 1024
    undo_days: Count = 14


class OpeningSettings(Struct, frozen=True, kw_only=True):
    """Which models are small, and so get examples instead of facts."""

    small_models: tuple[str, ...] = ()


class ReviewSettings(Struct, frozen=True, kw_only=True):
    """Whether and how often finished turns are reviewed in the background."""

    enabled: bool = False
    every_turns: Count = 5
    every_calls: Count = 15
    memory: bool = True
    user_profile: bool = True


class ConfirmSettings(_WithSecrets, frozen=True, kw_only=True):
    """Where confirmations are served, who is notified, and the credentials of clients."""

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
    """How jobs run: the context window they need, the model for simple prompts, the time zone."""

    min_context: Count = 64_000
    timezone: str = ""
    deliver: tuple[str, ...] = ()
    simple_model: str = ""
    simple_provider: str = ""
    simple_words: Count = 28
    workers: Count = 4


class HostsSettings(Struct, frozen=True, kw_only=True):
    """How Journeyman works in the agents that it is installed into."""

    start: Literal["on-demand", "never"] = "on-demand"
    budget_tokens: Count = BUDGET_TOKENS
    facts: tuple[FactKind, ...] = ("preference", "command", "trap", "continuity", "finding")
    subagents: bool = False
    gate_tools: tuple[str, ...] = ()
    ask: Literal["host", "service", "both"] = "host"
    confirm_timeout_s: Annotated[int, Meta(ge=30, le=3_600)] = 300
    defer_after_s: Count = 60
    holdout: Annotated[float, Meta(ge=0, le=1)] = 0.0
    learn: bool = True
    review: Literal["off", "propose"] = "off"
    review_tokens: Count = 500_000


class Settings(Struct, frozen=True, kw_only=True):
    """The settings in force."""

    home: Path
    database: str
    busy_timeout_s: Amount = 30.0
    trivial_tools: tuple[str, ...] = TRIVIAL_TOOLS
    clones: tuple[str, ...] = ()
    model: ModelSettings = ModelSettings()
    agent: AgentSettings = AgentSettings()
    opening: OpeningSettings = OpeningSettings()
    review: ReviewSettings = ReviewSettings()
    confirm: ConfirmSettings = ConfirmSettings()
    jobs: JobsSettings = JobsSettings()
    hosts: HostsSettings = HostsSettings()
    providers: dict[str, ModelSettings] = {}
    """Additional endpoints by name, for jobs."""


class Setting(NamedTuple):
    """One setting. In config.toml, the key `a.b` is `b` in the table `[a]`."""

    key: str
    about: str
    also: str
    """An older environment variable that also sets it; `variable` takes precedence."""

    @property
    def variable(self) -> str:
        return f"JOURNEYMAN_{self.key.upper().replace('.', '_')}"


_ABOUT = """\
database              database URL; default sqlite:///<home>/journeyman.db
busy_timeout_s        seconds to wait for a locked SQLite database; default 30
trivial_tools         list of housekeeping tools, which teach nothing; default clarify, memory, …
clones                list of folders that share the project of their git remote in any case
model.name            the model that agents use: embedded, or one at an endpoint
model.base_url        address of an OpenAI-compatible endpoint
model.api_key         API key for that endpoint; default its vendor's variable, OPENAI_API_KEY …
model.context_length  the model's context window in tokens; detected by default
model.max_tokens      longest reply, in tokens
model.temperature     sampling temperature; default: the endpoint's
agent.turns           maximum number of model requests in one turn; default 40
agent.tokens          maximum number of tokens in one turn; no limit by default
agent.cost_usd        maximum cost of one turn, in US dollars; no limit by default
agent.seconds         longest turn, in seconds; no limit by default
agent.knowledge       folder with memories/ and skills/; default the home
agent.network         off, ask or on: network access for commands; default ask
agent.confine         false runs commands with your permissions; default true
agent.memory_mb       memory for each process of a command in MB; default half of all
agent.processes       maximum number of processes of a command; default 500
agent.file_mb         largest file that a command may write, in MB; default 1024
agent.cpu_s           processor time for each of its processes in seconds; default 3600
agent.undo            true saves the workspace before a turn changes it; default true
agent.undo_mb         largest workspace that is saved, in MB; default 1024
agent.undo_days       days for which a turn can be undone; default 14
opening.small_models  list of models that get examples in place of facts, such as "qwen3:4b"
review.enabled        true reviews finished turns; default false
review.every_turns    review after this many turns; default 5
review.every_calls    or after this many tool calls; default 15
review.memory         false keeps reviews from writing notes about the work; default true
review.user_profile   false keeps reviews from writing notes about the user; default true
confirm.host          address on which confirmations are served; default 127.0.0.1
confirm.port          port for agents; default 6000
confirm.page_port     port of the web page for approvers; default 6080
confirm.hosts         list of further host names for agents, as name:port
confirm.page_hosts    list of further host names for the page, as name:port
confirm.page_url      address of the page in notices; default its host and port
confirm.rate_limit    maximum requests of all agents for one action per hour; default 10
confirm.policy        the policy file; default <home>/confirm.toml
confirm.notify        list of apprise addresses to notify; the first that works is used
confirm.url           address of the service for clients; default http://<host>:<port>
confirm.token         the agent's token, with which the gate asks the service
confirm.approver_key  the approver's key, for approve and deny
jobs.min_context      smallest context window for a job, in tokens; default 64000
jobs.timezone         time zone of schedules; default this machine's
jobs.deliver          list of destinations: terminal, file:/path, or an apprise address
jobs.simple_model     model for simple prompts; default: the default model
jobs.simple_provider  provider of that model; default: the default provider
jobs.simple_words     longest prompt, in words, that counts as simple; default 28
jobs.workers          maximum number of jobs that run at the same time; default 4
hosts.start           on-demand or never: may a hook start `journeyman serve`; default on-demand
hosts.facts           list of the kinds of facts that agents are told, by default all
hosts.budget_tokens   longest opening for a host, in tokens; default 1500
hosts.subagents       true gives openings to subagents too; default false
hosts.gate_tools      list of further tools that always need approval, such as mcp__github__*
hosts.ask             host, service or both: who asks a person in front of the host; default host
hosts.confirm_timeout_s  seconds that people have to approve a host's call; default 300
hosts.defer_after_s   seconds until `claude -p` defers a call, or both has the host ask; default 60
hosts.holdout         share of sessions without an opening, for comparison, 0 to 1; default 0
hosts.learn           true learns from sessions when hosts report their end; default true
hosts.review          off or propose: draft what ended sessions show, for you; default off
hosts.review_tokens   tokens that these reviews may use on one day; default 500000
"""
"""Every setting and its description."""
_ALSO = ("confirm.host", "confirm.port", "confirm.rate_limit")
SETTINGS = tuple(
    Setting(key, about, key.upper().replace("CONFIRM.", "CONFIRMATION_") if key in _ALSO else "")
    for key, about in (line.split(maxsplit=1) for line in _ABOUT.splitlines())
)
VENDORS = {
    "OPENAI_API_KEY": ("OpenAI", OPENAI),
    "OPENROUTER_API_KEY": ("OpenRouter", "https://openrouter.ai/api/v1"),
    "ANTHROPIC_API_KEY": ("Anthropic", "https://api.anthropic.com/v1"),
    "GEMINI_API_KEY": ("Gemini", "https://generativelanguage.googleapis.com/v1beta/openai"),
    "MISTRAL_API_KEY": ("Mistral", "https://api.mistral.ai/v1"),
    "DEEPSEEK_API_KEY": ("DeepSeek", "https://api.deepseek.com/v1"),
    "GROQ_API_KEY": ("Groq", "https://api.groq.com/openai/v1"),
    "TOGETHER_API_KEY": ("Together", "https://api.together.xyz/v1"),
    "XAI_API_KEY": ("xAI", "https://api.x.ai/v1"),
}
"""The variables in which people keep API keys, with the vendor and its OpenAI-compatible endpoint.
A key is only ever sent to its own vendor."""
PROVIDERS = "providers"
"""The table of additional endpoints. Each has the keys of `model`, but no environment variables."""
_ADDRESSES = ("confirm.notify", "jobs.deliver")
"""In an environment variable these are separated by spaces, because addresses may hold commas."""
SECRETS = ("model.api_key", "confirm.token", "confirm.approver_key", *_ADDRESSES)
"""Settings whose values are never shown."""
TABLES: dict[str, type[Struct]] = {
    field.name: type(field.default)
    for field in msgspec.structs.fields(Settings)
    if isinstance(field.default, Struct)
}
_KINDS = {field.name: field.type for field in msgspec.structs.fields(Settings)} | {
    f"{table}.{field.name}": field.type
    for table, kind in TABLES.items()
    for field in msgspec.structs.fields(kind)
}
_KIND_NAMES = {
    bool: "true or false",
    Count: "a whole number, 1 or more",
    Port: "a whole number from 0 to 65535",
    Amount: "a number, 0 or more",
}
BY_KEY = {setting.key: setting for setting in SETTINGS}
_SWITCHES = {"yes": True, "on": True, "no": False, "off": False}


def expected(key: str) -> str:
    """Return what a value of a setting has to be."""
    for kind, name in _KIND_NAMES.items():
        if _KINDS[key] in (kind, kind | None):
            return f"{name}: {BY_KEY[key].about}"
    return BY_KEY[key].about


def convert(key: str, value: Any) -> Any:
    """Return a value as the type of its setting; raise ValueError. Environment variables and
    commands hold text, with lists separated by commas.
    """
    kind = _KINDS[key]
    if isinstance(value, str) and kind is not str:
        if get_origin(kind) is tuple:
            names = value.split(None if key in _ADDRESSES else ",")
            value = [name.strip() for name in names if name.strip()]
        else:
            value = _SWITCHES.get(value.casefold(), value) if kind is bool else value.strip()
    found = msgspec.convert(value, kind, strict=False)
    if isinstance(found, tuple):
        return tuple(dict.fromkeys(name.strip() for name in found if name.strip()))
    return found


def sqlite_url(path: Path) -> str:
    """Return the database URL of a SQLite file, with reserved characters quoted."""
    return _SQLITE + quote(str(path))


def sqlite_path(url: str) -> Path | None:
    """Return the file that a database URL names, or None if it is not a plain SQLite URL."""
    if not url.startswith(_SQLITE) or "?" in url:
        return None
    return Path(unquote(url.removeprefix(_SQLITE)))
