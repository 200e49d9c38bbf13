"""The stored templates: each version is an immutable value, with its usage counted separately."""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import Template
from journeyman.records.errors import BadTemplate
from journeyman.store.engine import Repository
from journeyman.store.rows import json_text, template_of
from journeyman.store.tables import templates

_LOCK = sa.text("SELECT pg_advisory_xact_lock(7263504)")


class Templates(Repository):
    """The templates of a store, by name and version."""

    def add(self, template: Template, *, new_name: bool = False) -> Template:
        """Store a template as the next version of its name; return it as stored. With `new_name`,
        raise BadTemplate if the name is taken.
        """
        with self._writing("storing a template") as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(_LOCK)  # two builders of the same name get two versions
            query = sa.select(sa.func.max(templates.c.version)).where(
                templates.c.name == template.name
            )
            version = (connection.execute(query).scalar() or 0) + 1
            if new_name and version > 1:
                raise BadTemplate(
                    f"There is a template {template.name!r} already, at version {version - 1}. "
                    "Nothing was imported. Use --as NAME to import under another name, or "
                    f"--replace to make this version {version} of it; older versions stay."
                )
            stored = msgspec.structs.replace(template, version=version)
            body = json_text(stored)
            values = {"name": stored.name, "version": version, "body": body}
            used = {"used": stored.used, "last_used_at": stored.last_used_at}
            connection.execute(templates.insert(), values | used)
        return template_of(body)

    def find(self, name: str, version: int | None = None) -> Template | None:
        """Return a template by its name, the newest version unless one is requested."""
        query = templates.select().where(_is_version(name, version))
        query = query.order_by(templates.c.version.desc()).limit(1)
        return next(iter(self._find(query)), None)

    def list(self, *, newest_only: bool = False) -> Sequence[Template]:
        """Return all templates by name and version, or only the newest of each name."""
        # Sorted here: the databases order capital letters differently.
        versions = sorted(self._find(templates.select()), key=lambda one: (one.name, one.version))
        newest = {template.name: template for template in versions}
        return list(newest.values()) if newest_only else versions

    def _find(self, query: sa.Select[Any]) -> Sequence[Template]:
        return [
            msgspec.structs.replace(
                template_of(row.body), used=row.used, last_used_at=row.last_used_at
            )
            for row in self._read("reading templates", query)
        ]

    def delete(self, name: str, version: int | None = None) -> int:
        """Delete one version of a template, or all; return how many there were."""
        which = _is_version(name, version)
        with self._writing("deleting a template", erases=True) as connection:
            return connection.execute(templates.delete().where(which)).rowcount

    def count_use(self, name: str, version: int, at: float) -> None:
        """Count an opening that was made from a template."""
        used = {"used": templates.c.used + 1, "last_used_at": at}
        with self._writing("counting a use") as connection:
            connection.execute(templates.update().where(_is_version(name, version)).values(used))


def _is_version(name: str, version: int | None) -> sa.ColumnElement[bool]:
    of_name = templates.c.name == name
    return of_name if version is None else of_name & (templates.c.version == version)
