"""The stored templates: each version is an immutable value, with its usage counted separately. The
results of trials of patterns and templates are stored here too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import Effect, Template
from journeyman.records.errors import BadTemplate
from journeyman.store.engine import Repository
from journeyman.store.quarantine import read_released, without_released
from journeyman.store.rows import dialect_insert, json_text, template_of
from journeyman.store.tables import effects, templates

_LOCK = sa.text("SELECT pg_advisory_xact_lock(7263504)")

# The same as `effect_id`, for the rows of the table.
_EFFECT_ID: sa.ColumnElement[str] = (
    sa.literal("template:") + templates.c.name + "@" + sa.cast(templates.c.version, sa.Text)
)

_TEMPLATE: sa.Select[Any] = sa.select(templates, effects.c.tried, effects.c.gained).join(
    effects, effects.c.id == _EFFECT_ID, isouter=True
)


_later = templates.alias()
_IS_NEWEST = ~sa.exists().where(
    _later.c.name == templates.c.name, _later.c.version > templates.c.version
)


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
            stored = msgspec.structs.replace(template, version=version, effect=Effect())
            body = json_text(stored)
            # A trial of a deleted version with the same number may have ended later.
            connection.execute(effects.delete().where(effects.c.id == effect_id(stored)))
            values = {"name": stored.name, "version": version, "body": body}
            values |= {"used": stored.used, "last_used_at": stored.last_used_at}
            connection.execute(templates.insert(), values)
        return template_of(body)

    def find(self, name: str, version: int | None = None) -> Template | None:
        """Return a template by its name, the newest version unless one is requested."""
        query = _TEMPLATE.where(_is_version(name, version)).order_by(templates.c.version.desc())
        return next(iter(self._find(query.limit(1))), None)

    def list(self, *, newest_only: bool = False) -> Sequence[Template]:
        """Return all templates by name and version, or only the newest of each name."""
        query = _TEMPLATE.where(_IS_NEWEST) if newest_only else _TEMPLATE
        # Sorted here: the databases order capital letters differently.
        return sorted(self._find(query), key=lambda template: (template.name, template.version))

    def _find(self, query: sa.Select[Any]) -> Sequence[Template]:
        with self._reading("reading templates") as connection:
            released = read_released(connection)
            rows = connection.execute(query)
            return [without_released(_template(row), released) for row in rows]

    def delete(self, name: str, version: int | None = None) -> int:
        """Delete one version of a template, or all; return how many there were."""
        which = _is_version(name, version)
        with self._writing("deleting a template", erases=True) as connection:
            of_these = sa.select(_EFFECT_ID).where(which)
            connection.execute(effects.delete().where(effects.c.id.in_(of_these)))
            return connection.execute(templates.delete().where(which)).rowcount

    def count_use(self, name: str, version: int, at: float) -> None:
        """Count an opening that was made from a template."""
        used = {"used": templates.c.used + 1, "last_used_at": at}
        with self._writing("counting a use") as connection:
            connection.execute(templates.update().where(_is_version(name, version)).values(used))

    def add_effects(self, gains: Mapping[str, Iterable[float]]) -> None:
        """Add the results of trials: every gain, by the id of the pattern or template."""
        values = [
            {"id": id_, "tried": len(each), "gained": sum(each)}
            for id_, each in sorted((id_, list(gained)) for id_, gained in gains.items())
            if each
        ]
        if not values:
            return
        with self._writing("storing the results of trials") as connection:
            insert = dialect_insert(connection.dialect.name)(effects)
            sums = {name: effects.c[name] + insert.excluded[name] for name in ("tried", "gained")}
            statement = insert.on_conflict_do_update(index_elements=["id"], set_=sums)
            connection.execute(statement, values)

    def effects(self, ids: Iterable[str]) -> dict[str, Effect]:
        """Return the results of trials of these; those that were never tried are left out."""
        rows = self._read_in("reading the results of trials", effects.select(), effects.c.id, ids)
        return {row.id: Effect(tried=row.tried, gained=row.gained) for row in rows}


def _is_version(name: str, version: int | None) -> sa.ColumnElement[bool]:
    of_name = templates.c.name == name
    return of_name if version is None else of_name & (templates.c.version == version)


def effect_id(template: Template) -> str:
    """Return the id under which the effect of a template is stored."""
    return f"template:{template.name}@{template.version}"


def _template(row: sa.Row[Any]) -> Template:
    effect = Effect() if row.tried is None else Effect(tried=row.tried, gained=row.gained)
    return msgspec.structs.replace(
        template_of(row.body), used=row.used, last_used_at=row.last_used_at, effect=effect
    )
