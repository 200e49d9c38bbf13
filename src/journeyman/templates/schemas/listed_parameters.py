"""Which parameters a schema lists. Models go on passing a parameter that was removed as long as
their history shows it, and most schemas allow what they do not list; so that an example with an
unlisted parameter is not shown, unless the schema says that it takes others.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from journeyman.templates.schemas.tool_shapes import Schema

_ALTERNATIVES = ("anyOf", "oneOf")
_PARTS = ("allOf", *_ALTERNATIVES)
_CONDITIONS = ("if", "then", "else")
_OTHERS = ("additionalProperties", "unevaluatedProperties")
_SAYS_NOTHING_MORE = {"type", "title", "description", "default", "examples"}


class ListedParameters:
    """The parameters that one tool's schema lists, at any depth."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        resource = DRAFT202012.create_resource(schema)
        self._lookup = Registry().resolver_with_root(resource).lookup

    def find_unlisted(self, arguments: object) -> str:
        """The first parameter that is not listed, as a path, or nothing."""
        return self._find([self._schema], arguments, "")

    def _find(self, schemas: list[Any], value: object, path: str) -> str:
        parts = list(self._parts(schemas))
        if isinstance(value, Mapping):
            return self._find_in_object(parts, value, path)
        if isinstance(value, list):
            for index, item in enumerate(value):
                inner = [one for part in parts for one in _item_schemas(part, index)]
                if found := self._find(inner, item, f"{path}[{index}]"):
                    return found
        return ""

    def _find_in_object(
        self, parts: list[Mapping[str, Any]], value: Mapping[str, Any], path: str
    ) -> str:
        closed = not any(_takes_others(part) for part in parts)
        closed = closed and any("properties" in part for part in parts)
        for name, inner in value.items():
            here = f"{path}.{name}" if path else name
            schemas = [one for part in parts for one in _property_schemas(part, name)]
            if closed and not schemas:
                return here
            if found := self._find(schemas, inner, here):
                return found
        return ""

    def _parts(self, schemas: list[Any]) -> Iterator[Mapping[str, Any]]:
        """All that is said about one value: the schemas, what they refer to and are made of."""
        waiting, seen = list(reversed(schemas)), set()
        while waiting:
            schema = waiting.pop()
            if not isinstance(schema, Mapping) or id(schema) in seen:
                continue
            seen.add(id(schema))
            yield schema
            waiting += [one for key in _PARTS for one in _listed(schema.get(key))]
            waiting += [schema[key] for key in _CONDITIONS if key in schema]
            dependent = schema.get("dependentSchemas")
            waiting += dependent.values() if isinstance(dependent, Mapping) else ()
            if isinstance(schema.get("$ref"), str):
                waiting.append(self._resolved(schema["$ref"]))

    def _resolved(self, reference: str) -> Any:
        try:
            return self._lookup(reference).contents
        except Unresolvable:
            return True  # whoever validates meets it again and says so


def _takes_others(part: Mapping[str, Any]) -> bool:
    """Whether a schema says that it takes what it does not list, or has an alternative that is any
    object.
    """
    if any(key in part and part[key] is not False for key in _OTHERS):
        return True
    alternatives = (one for key in _ALTERNATIVES for one in _listed(part.get(key)))
    return any(_is_any_object(one) for one in alternatives)


def _is_any_object(schema: object) -> bool:
    if not isinstance(schema, Mapping):
        return schema is True
    return schema.get("type") == "object" and schema.keys() <= _SAYS_NOTHING_MORE


def _property_schemas(part: Mapping[str, Any], name: str) -> Iterator[Any]:
    listed = part.get("properties")
    if isinstance(listed, Mapping) and listed.get(name, False) is not False:
        yield listed[name]
    patterns = part.get("patternProperties")
    for pattern, schema in patterns.items() if isinstance(patterns, Mapping) else ():
        try:
            if re.search(pattern, name):
                yield schema
        except re.error:
            yield True  # whoever validates meets it again and says so


def _item_schemas(part: Mapping[str, Any], index: int) -> Iterator[Any]:
    items = part.get("items")
    first = _listed(part.get("prefixItems")) or _listed(items)
    if index < len(first):
        yield first[index]
    elif isinstance(items, Mapping):
        yield items


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
