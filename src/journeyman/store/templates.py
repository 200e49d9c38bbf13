"""Templates as they are kept: each version a value of its own that never changes, with its usage
counted beside. What trials found about patterns and templates is kept here too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import Effect, Template
from journeyman.store.engine import Repository
from journeyman.store.quarantine import read_released, without_released
from journeyman.store.rows import inserting, json_text
from journeyman.store.tables import effects, templates

_decode = msgspec.json.Decoder(Template).decode

_LOCK = sa.text("SELECT pg_advisory_xact_lock(7263504)")

# What `effect_id` says, for the rows of the table.
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

    def add(self, template: Template) -> Template:
        """Keep a template as the next version of its name; returns it as it was kept."""
        with self._writing("keeping a template") as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(_LOCK)  # two who build the same name get two versions
            asked = sa.select(sa.func.max(templates.c.version)).where(
                templates.c.name == template.name
            )
            version = (connection.execute(asked).scalar() or 0) + 1
            kept = msgspec.structs.replace(
                template, version=version, used=0, last_used_at=None, effect=Effect()
            )
            body = json_text(kept)
            # A trial of a deleted version of the same number may have ended later.
            connection.execute(effects.delete().where(effects.c.id == effect_id(kept)))
            values = {"name": kept.name, "version": version, "body": body}
            connection.execute(templates.insert(), values)
        return _decode(body)

    def find(self, name: str, version: int | None = None) -> Template | None:
        """A template by its name, the newest version unless one is named."""
        asked = _TEMPLATE.where(_which(name, version)).order_by(templates.c.version.desc())
        return next(iter(self._find(asked.limit(1))), None)

    def list(self, *, newest_only: bool = False) -> Sequence[Template]:
        """All templates by name and version, or of each name the newest."""
        asked = _TEMPLATE.where(_IS_NEWEST) if newest_only else _TEMPLATE
        # Sorted here: the databases disagree on where capital letters belong.
        return sorted(self._find(asked), key=lambda one: (one.name, one.version))

    def _find(self, asked: sa.Select[Any]) -> Sequence[Template]:
        with self._reading("reading templates") as one:
            released = read_released(one)
            return [without_released(_stored(row), released) for row in one.execute(asked)]

    def delete(self, name: str, version: int | None = None) -> int:
        """Delete one version of a template, or all; how many there were."""
        which = _which(name, version)
        with self._writing("deleting a template", erases=True) as connection:
            of_these = sa.select(_EFFECT_ID).where(which)
            connection.execute(effects.delete().where(effects.c.id.in_(of_these)))
            return connection.execute(templates.delete().where(which)).rowcount

    def count_use(self, name: str, version: int, at: float) -> None:
        """Say that an opening was made from a template."""
        used = {"used": templates.c.used + 1, "last_used_at": at}
        with self._writing("counting a use") as connection:
            connection.execute(templates.update().where(_which(name, version)).values(used))

    def add_effects(self, gains: Mapping[str, Iterable[float]]) -> None:
        """Add what trials found: for the id of a pattern or a template each gain there was."""
        values = [
            {"id": id_, "tried": len(each), "gained": sum(each)}
            for id_, each in sorted((id_, list(found)) for id_, found in gains.items())
            if each
        ]
        if not values:
            return
        with self._writing("keeping effects") as connection:
            adding = inserting(connection.dialect.name)(effects)
            sums = {name: effects.c[name] + adding.excluded[name] for name in ("tried", "gained")}
            adding = adding.on_conflict_do_update(index_elements=["id"], set_=sums)
            connection.execute(adding, values)

    def effects(self, ids: Iterable[str]) -> dict[str, Effect]:
        """What trials found about these; those that were never tried are left out."""
        found = self._read_in("reading effects", effects.select(), effects.c.id, ids)
        return {row.id: Effect(tried=row.tried, gained=row.gained) for row in found}


def _which(name: str, version: int | None) -> sa.ColumnElement[bool]:
    of_name = templates.c.name == name
    return of_name if version is None else of_name & (templates.c.version == version)


def effect_id(template: Template) -> str:
    """Under what the effect of a template is kept."""
    return f"template:{template.name}@{template.version}"


def _stored(row: sa.Row[Any]) -> Template:
    effect = Effect() if row.tried is None else Effect(tried=row.tried, gained=row.gained)
    return msgspec.structs.replace(
        _decode(row.body), used=row.used, last_used_at=row.last_used_at, effect=effect
    )
