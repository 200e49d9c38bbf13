"""What people decided about facts, and what they told Journeyman to remember."""

from collections.abc import Sequence

import sqlalchemy as sa

from journeyman.records.fact import FactDecision
from journeyman.records.project import is_in_project
from journeyman.store.engine import Repository
from journeyman.store.episodes import bump_revision
from journeyman.store.rows import record_of, storable
from journeyman.store.tables import fact_decisions


class FactDecisions(Repository):
    """The decisions about facts, one for each project and fact."""

    def decisions(self, project: str) -> Sequence[FactDecision]:
        """Return the decisions in a project, the oldest first. The name may be the end of the whole
        one, as in `sessions.list`.
        """
        query = fact_decisions.select().order_by(fact_decisions.c.at, fact_decisions.c.id)
        return [
            record_of(FactDecision, row)
            for row in self._read("reading facts", query)
            if is_in_project(row.project, project) or is_in_project(project, row.project)
        ]

    def decide(self, decision: FactDecision) -> None:
        """Store a decision in the place of an earlier one about the same fact."""
        table = fact_decisions
        with self._writing("deciding about a fact") as connection:
            self._delete(connection, decision.project, decision.id)
            values = {name: getattr(decision, name) for name in decision.__struct_fields__}
            connection.execute(table.insert(), {**values, "text": storable(decision.text)})
            bump_revision(connection)

    def withdraw(self, project: str, id_: str) -> bool:
        """Withdraw a decision; return whether there was one."""
        same = (one for one in self.decisions(project) if one.id == id_)
        project = next((one.project for one in same), project)
        with self._writing("deciding about a fact", erases=True) as connection:
            found = self._delete(connection, project, id_)
            bump_revision(connection)
        return found

    def _delete(self, connection: sa.Connection, project: str, id_: str) -> bool:
        table = fact_decisions
        this = (table.c.project == project) & (table.c.id == id_)
        return bool(connection.execute(table.delete().where(this)).rowcount)
