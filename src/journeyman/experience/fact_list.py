"""The facts of projects as people see them: list, show, pin, drop, accept, edit, remember."""

from collections.abc import Callable, Sequence
from pathlib import Path

from journeyman.experience.checkout import Checkout
from journeyman.experience.experience import Experiences
from journeyman.experience.preferences import is_alike, may_be_told
from journeyman.records.errors import WrongInput
from journeyman.records.fact import TOLD, Fact, FactDecision, FactState, Playbook, fact_id
from journeyman.redaction.instructions import find_suspicion
from journeyman.redaction.redactor import Redactor
from journeyman.store.store import Store

LONGEST_TEXT = 300


class FactList:
    """The facts of projects (`jm.facts`)."""

    def __init__(self, store: Store, experiences: Experiences, clock: Callable[[], float]) -> None:
        self._store = store
        self._experiences = experiences
        self._clock = clock

    def list(self, project: str, *, drafts: bool = False, bots: bool = False) -> Sequence[Fact]:
        """Return the facts of a project, or the drafts that wait for a person. Dropped facts come
        last.
        """
        facts = self._experiences.of(project, bots=bots).facts.all
        shown = [fact for fact in facts if (fact.state == "draft") == drafts]
        return sorted(shown, key=lambda fact: fact.state == "dropped")

    def get(self, project: str, id_: str) -> Fact:
        """Return a fact by its id or the beginning of it, of people's sessions before that of bots.
        Raises WrongInput.
        """
        start, found = id_.strip().casefold(), list[Fact]()
        for bots in (False, True) if start else ():
            facts = self._experiences.of(project, bots=bots).facts.all
            found = found or [fact for fact in facts if fact.id.startswith(start)]
        if len(found) == 1:
            return found[0]
        if not found:
            raise WrongInput(
                f"There is no fact {id_!r} in {project!r}. `journeyman facts list` shows the ids."
            )
        ids = ", ".join(fact.id for fact in found[:3])
        raise WrongInput(f"More than one fact starts with {id_!r}: {ids}. Use more characters.")

    def decide(self, project: str, id_: str, state: FactState, *, text: str | None = None) -> Fact:
        """Pin, drop or accept a fact, or give it another text. Return it as it is now."""
        fact = self.get(project, id_)
        decided = self._store.facts.decisions(project)
        earlier = next((one.text for one in decided if one.id == fact.id), "")
        chosen = earlier if text is None else checked_text(text)
        self._store.facts.decide(
            FactDecision(
                project=project,
                id=fact.id,
                state=state,
                kind=fact.kind,
                text=chosen,
                at=self._clock(),
            )
        )
        return self.get(project, fact.id)

    def accept(self, project: str, id_: str) -> Fact:
        """Accept a draft: agents are told it. Raises WrongInput for any other fact."""
        fact = self.get(project, id_)
        if fact.state != "draft":
            raise WrongInput(f"The fact {fact.id} is no draft. `journeyman facts pin` pins a fact.")
        return self.decide(project, fact.id, "pinned")

    def restore(self, project: str, id_: str) -> None:
        """Withdraw a decision about a fact; what was told to remember is forgotten. Raises
        WrongInput if there was none.
        """
        fact = self.get(project, id_)
        if not self._store.facts.withdraw(project, fact.id):
            raise WrongInput(f"Nothing was decided about the fact {fact.id}.")

    def remember(self, project: str, text: str) -> Fact:
        """Store what a person wants in a project. Raises WrongInput for an empty or unsafe text."""
        if not project:
            raise WrongInput("Name the project: run this in its folder, or pass --project.")
        return self._tell(project, checked_text(text), "pinned")

    def draft(self, project: str, text: str, *, confirms: Callable[[Fact], bool]) -> Fact:
        """Store what a review of a session drafted. If it says the same as a draft that it
        `confirms`, that one is known from now on. Raises WrongInput for an unsafe text, and for
        what is there already.
        """
        if not project:
            raise WrongInput("The session belongs to no project.")
        words = checked_text(text)
        facts = self._experiences.of(project).facts.all
        same = next((fact for fact in facts if is_alike(fact.subject, words)), None)
        if same is None:
            return self._tell(project, words, "draft")
        if same.state == "dropped":
            raise WrongInput(f"A person refused this: {same.text}")
        if same.state != "draft":
            raise WrongInput(f"This is known: {same.text}")
        if not (may_be_told(same.subject) and confirms(same)):
            raise WrongInput(f"The draft {same.id} says the same.")
        return self.decide(project, same.id, "known")

    def _tell(self, project: str, words: str, state: FactState) -> Fact:
        id_ = f"{TOLD}{fact_id('preference', words)[1:]}"
        self._store.facts.decide(
            FactDecision(project=project, id=id_, state=state, text=words, at=self._clock())
        )
        return self.get(project, id_)

    def playbook(self, project: str, root: Path | None = None, *, bots: bool = False) -> Playbook:
        """Return a project's facts, as far as they hold in its top folder, and what they correct in
        the instructions files there; an empty one if nothing was learned.
        """
        experience = self._experiences.of(project, bots=bots)
        facts, checkout = experience.facts, Checkout(root)
        if root is not None:
            facts = facts.at(root)
        return Playbook(
            project=Redactor().text(project),
            sessions=facts.sessions,
            bots=experience.bots,
            facts=tuple(fact for fact in facts.holding(checkout) if fact.detail != "test"),
            corrections=facts.corrections(checkout),
        )


def checked_text(text: str) -> str:
    """Return a person's text on one line. Raises WrongInput."""
    plain = " ".join(text.split())
    words = Redactor().text(plain)
    if words != plain:
        raise WrongInput(
            "The text has a secret or personal data in it, which agents are never told: "
            f"{words}. Say it without."
        )
    if not words:
        raise WrongInput("The text is empty. Say what agents should know.")
    if len(words) > LONGEST_TEXT:
        raise WrongInput(
            f"The text has {len(words)} characters. Agents are told at most {LONGEST_TEXT} at a "
            "time: say it in fewer words."
        )
    if suspicion := find_suspicion((), requests=(words,)):
        raise WrongInput(
            f"The text looks like an attack on its reader ({suspicion.rule}). Reword it."
        )
    return words
