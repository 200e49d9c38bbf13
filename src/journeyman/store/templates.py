"""Templates as they are kept: each version a value of its own that never changes, with its usage
counted beside. What trials found about patterns and templates is kept here too.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import Effect, Template
from journeyman.store.engine import explained, writing
from journeyman.store.quarantine import read_released, without_released
from journeyman.store.tables import effects, templates
from journeyman.store.values import inserting, json_text, parts

_decode = msgspec.json.Decoder(Template).decode

_LOCK = sa.text("SELECT pg_advisory_xact_lock(7263504)")

# What `effect_id` says, for the rows of the table.
_EFFECT_ID: sa.ColumnElement[str] = (
    sa.literal("template:") + templates.c.name + "@" + sa.cast(templates.c.version, sa.Text)
)

_TEMPLATE: sa.Select[Any] = sa.select(
    templates.c.body,
    templates.c.used,
    templates.c.last_used_at,
    effects.c.tried,
    effects.c.gained,
).join(effects, effects.c.id == _EFFECT_ID, isouter=True)


_later = templates.alias()
_IS_NEWEST = ~sa.exists().where(
    _later.c.name == templates.c.name, _later.c.version > templates.c.version
)


class Templates:
    """The templates of a store, by name and version."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def add(self, template: Template) -> Template:
        """Keep a template as the next version of its name; returns it as it was kept."""
        with writing(self._engine, "keeping a template") as connection:
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
            connection.execute(
                templates.insert(),
                {
                    "name": kept.name,
                    "version": version,
                    "body": body,
                },
            )
        return _decode(body)

    def find(self, name: str, version: int | None = None) -> Template | None:
        """A template by its name, the newest version unless one is named."""
        which = [] if version is None else [templates.c.version == version]
        newest = templates.c.version.desc()
        found = self._read(
            _TEMPLATE.where(templates.c.name == name, *which).order_by(newest).limit(1)
        )
        return found[0] if found else None

    def list(self, *, newest_only: bool = False) -> Sequence[Template]:
        """All templates by name and version, or of each name the newest."""
        asked = _TEMPLATE.where(_IS_NEWEST) if newest_only else _TEMPLATE
        # Sorted here: the databases disagree on where capital letters belong.
        return sorted(self._read(asked), key=lambda one: (one.name, one.version))

    def _read(self, asked: sa.Select[Any]) -> Sequence[Template]:
        with explained(self._engine.url, "reading templates"), self._engine.connect() as one:
            released = read_released(one)
            return [without_released(_stored(row), released) for row in one.execute(asked)]

    def delete(self, name: str, version: int | None = None) -> int:
        """Delete one version of a template, or all; how many there were."""
        of_name = templates.c.name == name
        which = of_name if version is None else of_name & (templates.c.version == version)
        with writing(self._engine, "deleting a template") as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA secure_delete=ON")
            of_these = sa.select(_EFFECT_ID).where(which)
            connection.execute(effects.delete().where(effects.c.id.in_(of_these)))
            return connection.execute(templates.delete().where(which)).rowcount

    def count_use(self, name: str, version: int, at: float) -> None:
        """Say that an opening was made from a template."""
        this = (templates.c.name == name) & (templates.c.version == version)
        with writing(self._engine, "counting a use") as connection:
            connection.execute(
                templates.update().where(this).values(used=templates.c.used + 1, last_used_at=at)
            )

    def add_effects(self, gains: Mapping[str, Iterable[float]]) -> None:
        """Add what trials found: for the id of a pattern or a template each gain there was."""
        values = [
            {"id": id_, "tried": len(each), "gained": sum(each)}
            for id_, each in sorted((id_, list(found)) for id_, found in gains.items())
            if each
        ]
        if not values:
            return
        with writing(self._engine, "keeping effects") as connection:
            connection.execute(_upsert(connection.dialect.name), values)

    def effects(self, ids: Iterable[str]) -> dict[str, Effect]:
        """What trials found about these; those that were never tried are left out."""
        found: dict[str, Effect] = {}
        with explained(self._engine.url, "reading effects"), self._engine.connect() as one:
            for some in parts(list(ids)):
                for row in one.execute(effects.select().where(effects.c.id.in_(some))):
                    found[row.id] = Effect(tried=row.tried, gained=row.gained)
        return found


def effect_id(template: Template) -> str:
    """Under what the effect of a template is kept."""
    return f"template:{template.name}@{template.version}"


def _stored(row: sa.Row[Any]) -> Template:
    effect = Effect() if row.tried is None else Effect(tried=row.tried, gained=row.gained)
    return msgspec.structs.replace(
        _decode(row.body), used=row.used, last_used_at=row.last_used_at, effect=effect
    )


@cache
def _upsert(dialect_name: str) -> Any:
    insert = inserting(dialect_name)
    statement = insert(effects)
    added = {name: effects.c[name] + statement.excluded[name] for name in ("tried", "gained")}
    return statement.on_conflict_do_update(index_elements=["id"], set_=added)
