"""Builds the model that the settings or a caller name."""

from journeyman.models.model import Model
from journeyman.records.errors import BadSetting, MissingPart
from journeyman.settings import EMBEDDED, OPENAI, ModelSettings, Settings

_HOW_TO_CHOOSE = (
    "Set model.base_url and model.name, for example: journeyman config set model.base_url "
    "http://127.0.0.1:11434/v1 && journeyman config set model.name qwen3:8b. `run --with HOST` "
    "needs neither; `--model embedded` is a small model that runs offline, for trying things out."
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


def make_model(settings: ModelSettings, name: str = "") -> Model:
    """Return the model with this name, else the one in the settings. Raise BadSetting if neither
    names one: the embedded model is never chosen silently.
    """
    name = name or settings.name
    if not name:
        raise BadSetting(f"No model is configured. {_HOW_TO_CHOOSE}")
    if name == EMBEDDED:
        from journeyman.models.embedded import EmbeddedModel  # noqa: PLC0415

        window = {"context_tokens": settings.context_length} if settings.context_length else {}
        longest = {"max_tokens": settings.max_tokens} if settings.max_tokens else {}
        return EmbeddedModel(**window, **longest)
    if not settings.base_url and not settings.api_key:
        raise BadSetting(
            f"The model {name} has neither an address nor an API key. {_HOW_TO_CHOOSE}"
        )
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
