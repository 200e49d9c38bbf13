"""Builds the model that the settings or a caller name."""

from pathlib import Path

from journeyman.models.model import Model
from journeyman.records.errors import BadSetting, MissingPart
from journeyman.settings import EMBEDDED, OPENAI, ModelSettings, Settings

NO_MODEL = (
    "No model is configured. Set one with `journeyman config set model.name NAME` and `journeyman "
    "config set model.base_url http://127.0.0.1:11434/v1`, or pass --model; --model embedded is a "
    "small model that runs offline, for trying things out."
)


def endpoint(settings: Settings, provider: str = "") -> ModelSettings:
    """Return the settings of a provider, or the default ones. Raise BadSetting."""
    default = settings.model
    if not provider:
        return default
    if provider == EMBEDDED:
        return ModelSettings(name=EMBEDDED)
    if provider not in settings.providers:
        known = ", ".join((EMBEDDED, *settings.providers))
        raise BadSetting(
            f"Unknown provider {provider!r}. Known providers: {known}. Add [providers.{provider}] "
            "with base_url and api_key to config.toml, or use another."
        )
    return settings.providers[provider]


def is_in_process(name: str) -> bool:
    """Return whether a model without an address runs in this process."""
    return name == EMBEDDED or name.endswith(".gguf")


def no_endpoint(name: str) -> str:
    """Return the sentences for a model that has neither an address nor a key."""
    return (
        f"The model {name} is a model of OpenAI, because model.base_url is not set, and there is "
        "no API key. Set model.api_key, OPENAI_API_KEY or model.base_url; `--model embedded` needs "
        "none of them."
    )


def make_model(settings: ModelSettings, name: str = "") -> Model:
    """Return the model with this name, else the one in the settings. Raise BadSetting if neither
    names one: the embedded model is never chosen silently.
    """
    name = name or settings.name
    if not name and settings.base_url:
        raise BadSetting(
            f"model.base_url is {settings.base_url}, but no model is named. Set model.name, or "
            "pass --model."
        )
    if not name:
        raise BadSetting(NO_MODEL)
    if name == EMBEDDED or (is_in_process(name) and not settings.base_url):
        from journeyman.models.embedded import EmbeddedModel  # noqa: PLC0415

        path = None if name == EMBEDDED else Path(name).expanduser()
        window = {"context_tokens": settings.context_length} if settings.context_length else {}
        longest = {"max_tokens": settings.max_tokens} if settings.max_tokens else {}
        return EmbeddedModel(path=path, **window, **longest)
    if not settings.base_url and not settings.api_key:
        raise BadSetting(no_endpoint(name))
    try:
        from journeyman.models.remote import RemoteModel  # noqa: PLC0415
    except ImportError as error:
        raise MissingPart(
            f"A model at an endpoint needs a package that is not installed ({error}). Install it "
            "with: pip install 'journeyman[agent]'"
        ) from error
    return RemoteModel(
        name=name,
        base_url=settings.base_url or OPENAI,
        api_key=settings.api_key,
        context_tokens=settings.context_length,
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
    )
