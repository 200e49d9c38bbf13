"""What may be sent to the server, and how it is read: strictly by type, with a message that names
the field. Fields that are not here are passed over: nobody approves by saying so.
"""

import math
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from litestar.dto import AbstractDTO
from litestar.openapi.spec import Reference, Schema
from litestar.typing import FieldDefinition
from msgspec import Meta, Struct

from journeyman.confirm.server.problems import BadBody
from journeyman.records.confirmation import Constraint

if TYPE_CHECKING:
    from litestar._openapi.schema_generation import SchemaCreator

DEEPEST = 32
"""How many levels of lists and objects a request may nest: more is not read by any person."""
LARGEST_INTEGER = 2**53 - 1
"""Beyond it, JSON readers disagree about which number was meant."""

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Short = Annotated[str, Meta(max_length=200)]
Reason = Annotated[str, Meta(max_length=2_000)]
Digest = Annotated[str, Meta(max_length=100)]
Secret = Annotated[str, Meta(min_length=1, max_length=4_000)]


class NewConfirmation(Struct, frozen=True, kw_only=True):
    """An action that an agent asks for."""

    action: Name
    description: Annotated[str, Meta(min_length=1, max_length=20_000)]
    details: dict[str, Any] = {}
    requester: Short = ""
    session_key: Short = ""
    timeout_seconds: Annotated[int, Meta(ge=30, le=3600)] = 300
    idempotency_key: Short = ""


class Cancelling(Struct, frozen=True, kw_only=True):
    """Taking a request back."""

    reason: Reason = ""


class Redeeming(Struct, frozen=True, kw_only=True):
    """Using an approval, once. `details` are what is about to run, to be held against it."""

    digest: Digest
    details: dict[str, Any] | None = None


class Approving(Struct, frozen=True, kw_only=True):
    """A yes to what the digest stands for; `details` where the person changed them."""

    digest: Digest
    reason: Reason = ""
    details: dict[str, Any] | None = None
    code: Short = ""
    typed: Short = ""


class Denying(Struct, frozen=True, kw_only=True):
    """A no. Without a digest it is a no whatever was shown."""

    reason: Reason = ""
    digest: Digest = ""


class NewWhitelistEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An action that is to pass without a person."""

    action: Name
    session_key: Short = ""
    requester: Short = ""
    constraints: dict[str, Constraint] = {}
    other_parameters: bool = False
    expires_in_seconds: Annotated[int, Meta(ge=1, le=10 * 366 * 86_400)] | None = None
    reason: Reason = ""


class LoggingIn(Struct, frozen=True, kw_only=True):
    """A person's name and key."""

    name: Name
    key: Secret


class OpeningLink(Struct, frozen=True, kw_only=True):
    """A one-time link, or what stands behind its `#`."""

    link: Secret


Read = TypeVar("Read")


_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def read(body: bytes, kind: type[Read]) -> Read:
    """A body as what the route takes. Raises BadBody with the field that is wrong."""
    decoder = _decoders.get(kind) or _decoders.setdefault(kind, msgspec.json.Decoder(kind))
    try:
        value: Read = decoder.decode(body)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at ")
        field = where.strip("`").removeprefix("$").removeprefix(".")
        place = f" in {field!r}" if field else ""
        raise BadBody(f"The body does not fit{place}: {said}.", field) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadBody(f"The body is not JSON: {error}.") from error
    except RecursionError as error:
        raise _too_deep("") from error
    check(value)
    return value


def check(value: object) -> None:
    """Raise BadBody where a part nests too deep, or has a number that readers read differently."""
    for name in getattr(value, "__struct_fields__", ()):
        _check(getattr(value, name), (name,))


def _check(value: object, where: tuple[str | int, ...]) -> None:
    # The place is put into words only when something is wrong: an agent may send long names.
    if isinstance(value, str | bool) or value is None:
        return
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise _too_large(where)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _too_large(where)
    elif len(where) > DEEPEST:
        raise _too_deep(str(where[0]))
    elif isinstance(value, dict):
        for name, part in value.items():
            _check(part, (*where, name))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            _check(part, (*where, index))
    else:
        for name in getattr(value, "__struct_fields__", ()):
            _check(getattr(value, name), (*where, name))


def _too_large(where: tuple[str | int, ...]) -> BadBody:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in where)
    place = "".join(steps).removeprefix(".")[:200]
    return BadBody(f"The number in {place!r} is too large; send it as text.", place)


def _too_deep(field: str) -> BadBody:
    return BadBody(f"The body nests deeper than {DEEPEST} levels. Send it flatter.", field)


class Strictly(AbstractDTO[Any]):
    """How Litestar is told to read bodies with `read`: its own way would take "300" for 300."""

    def decode_bytes(self, value: bytes) -> Any:
        """The body as the route's own type."""
        taken = self.asgi_connection.route_handler.parsed_data_field
        assert taken is not None
        return read(value, taken.annotation)

    @classmethod
    def create_for_field_definition(cls, *_: Any, **__: Any) -> None:
        """Nothing is made: the types above are read and shown as they are."""

    @classmethod
    def create_openapi_schema(
        cls,
        field_definition: FieldDefinition,
        handler_id: str,  # noqa: ARG003
        schema_creator: "SchemaCreator",
    ) -> Reference | Schema:
        """The schema of the route's own type."""
        return schema_creator.for_field_definition(field_definition)

    @classmethod
    def generate_field_definitions(cls, model_type: type[Any]) -> Any:
        """Of no use here."""
        raise NotImplementedError(model_type)

    @classmethod
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:
        """Of no use here."""
        raise NotImplementedError(field_definition)
