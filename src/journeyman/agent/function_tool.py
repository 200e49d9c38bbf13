"""Makes a tool of a plain function: its type hints become the schema of the arguments, and its
docstring the description.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import msgspec

from journeyman.agent.tools.tool import Invocation, Result, Tool, worked
from journeyman.gate.decision import Risk
from journeyman.records.errors import WrongInput

_REFERENCE = "#/$defs/{name}"


def function_tool(function: Callable[..., Any], *, risk: Risk = "unknown") -> Tool:
    """Return a tool that calls a function with keyword arguments. A mapping that it returns is the
    result; anything else becomes its `result`. An exception fails the call. A person is asked
    about every call, unless the `risk` says that it can do no harm. Raise WrongInput.
    """
    name, description = getattr(function, "__name__", ""), inspect.getdoc(function) or ""
    try:
        hints = get_type_hints(function, include_extras=True)
        fields = [_field(one, hints) for one in inspect.signature(function).parameters.values()]
        arguments = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        _, schemas = msgspec.json.schema_components((arguments,), ref_template=_REFERENCE)
    except (TypeError, ValueError, NameError, KeyError) as error:
        raise WrongInput(
            f"{name or function!r} cannot become a tool: {error}. Pass a function whose "
            "parameters have type hints, or a Tool."
        ) from error
    if inspect.iscoroutinefunction(function) or not name.isidentifier() or not description:
        raise WrongInput(
            f"{name or function!r} cannot become a tool: pass a plain function with a name and a "
            "docstring, which tells the model what it is for."
        )
    schema = schemas.pop("Arguments")
    parameters = {key: value for key, value in schema.items() if key != "title"}

    def run(call: Invocation) -> Result:
        values = msgspec.structs.asdict(msgspec.convert(call.arguments, arguments))
        result = msgspec.to_builtins(function(**values))
        return worked(**result) if isinstance(result, Mapping) else worked(result=result)

    return Tool(
        name=name,
        description=description,
        parameters=parameters | ({"$defs": schemas} if schemas else {}),
        run=run,
        risk=risk,
    )


def _field(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> tuple[str, Any, Any]:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError(f"the parameter {parameter} cannot be passed by name")
    if parameter.name not in hints:
        raise TypeError(f"the parameter {parameter.name} has no type hint")
    default = parameter.default
    is_required = default is inspect.Parameter.empty
    return parameter.name, hints[parameter.name], msgspec.NODEFAULT if is_required else default
