"""The drafts in the answer of a review in a host. They are read leniently, and each must stand on
evidence in the stored session.
"""

import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.knowledge.skills import parse_front_matter
from journeyman.agent.review.evidence import Evidence, SessionEvidence
from journeyman.agent.review.rules import WriteForbidden, WriteRules
from journeyman.experience.checkout import Checkout, find_root
from journeyman.experience.fact_list import checked_text
from journeyman.facade.journeyman import Journeyman
from journeyman.gate.gate import Gate
from journeyman.learning.agent_tools import shell_command
from journeyman.learning.commands import check_kind, commands_of, is_project_command
from journeyman.models.embedder import Embedder
from journeyman.records import Draft, EntryChange, Session, Write
from journeyman.records.fact import Fact, fact_id
from journeyman.records.knowledge import DraftKind

SKILL_ID = "s"
"""What the id of a drafted skill begins with: not a digit of other ids."""

_ORDER = re.compile(
    r"\b(?:always|never|must|should|don'?t|do not|remember|from now on)\b", re.IGNORECASE
)


class Proposal(Struct, frozen=True, kw_only=True):
    """A draft as a model proposes it."""

    kind: DraftKind
    text: str
    evidence: str = ""
    name: str = ""
    description: str = ""

    @property
    def skill_file(self) -> str:
        """The SKILL.md of a skill."""
        front = f"name: {self.name}\ndescription: {json.dumps(self.description)}"
        return f"---\n{front}\n---\n\n{self.text.strip()}\n"


def read_proposals(answer: str) -> tuple[list[Proposal], list[Any]]:
    """Return what an answer proposes, and what of it is no draft. The JSON object may stand in a
    fence or between sentences. Raise ValueError if there is none.
    """
    decoder = json.JSONDecoder(strict=False)
    for start in re.finditer(r"\{", answer):
        try:
            value, _ = decoder.raw_decode(answer, start.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get("drafts"), list):
            proposals, unusable = [], []
            for one in value["drafts"]:
                try:
                    proposals.append(msgspec.convert(one, Proposal))
                except msgspec.ValidationError:
                    unusable.append(one)
            return proposals, unusable
    raise ValueError("The answer has no JSON object with drafts.")


class DraftRules:
    """Turns the proposals of the review of one session into drafts. `folder` is where the host
    keeps its skills.
    """

    def __init__(self, journeyman: Journeyman, session: Session, folder: Path) -> None:
        self._journeyman, self._session = journeyman, session
        self._knowledge = Knowledge(folder)
        self._gate = Gate(Path(session.cwd), home=Path.home())
        messages = tuple(journeyman.sessions.messages(session.id))
        self._rules = WriteRules(
            session_evidence=SessionEvidence(messages, only_done=True),
            existing_texts=self._existing_texts,
            similarity=Embedder().similarity,
            find_risk=lambda text: getattr(self._gate.find_risky_command(text), "reason", ""),
        )

    def draft(self, proposal: Proposal) -> Draft:
        """Return a proposal as a draft that is stored as waiting, or as known if another session
        has shown the same. Raise JourneymanError with the reason if it must not be kept.
        """
        if proposal.kind == "skill":
            return self._skill(proposal)
        text = checked_text(proposal.text)
        write = Write(
            kind="user" if proposal.kind == "preference" else "memory",
            action="add",
            path="",
            after=text,
            entries=(EntryChange(index=0, after=text),),
        )
        evidence = self._check(write, proposal)
        if not evidence.is_from_user and _ORDER.search(text):
            raise WriteForbidden("An order must come from the person: quote the person.")
        project = self._session.project
        confirms = partial(self._confirms, evidence)
        fact = self._journeyman.facts.draft(project, text, confirms=confirms)
        return Draft(
            id=fact.id,
            kind=proposal.kind,
            text=fact.subject,
            evidence=proposal.evidence,
            project=project,
        )

    def _skill(self, proposal: Proposal) -> Draft:
        write = self._knowledge.skills.create(proposal.name, proposal.skill_file)
        self._check(write, proposal)
        return Draft(
            id=SKILL_ID + fact_id("command", f"{self._session.id} {proposal.name}")[1:],
            kind="skill",
            text=proposal.skill_file,
            evidence=proposal.evidence,
            name=proposal.name,
            folder=str(self._knowledge.folder),
        )

    def _check(self, write: Write, proposal: Proposal) -> Evidence:
        """Return the evidence of a proposal, by the rules that hold for every review. Here, calls
        are evidence only if they ran something: what a call reads, anyone may have written.
        """
        evidence = self._rules.check(write, proposal.evidence)
        if not evidence.is_from_user and not any(
            is_project_command(command.name) or check_kind(command.name)
            for call in evidence.calls
            for command in commands_of(shell_command(call.tool, call.arguments))
        ):
            raise WriteForbidden("The call ran no command of the project, so it shows nothing.")
        self._rules.note_write(write)
        return evidence

    def _existing_texts(self, kind: str) -> Sequence[str]:
        if kind == "skill":
            known = self._knowledge.skills.list()
            waiting = [
                f"{draft.name} {parse_front_matter(draft.text).description}"
                for review in self._journeyman.reviews.store.list(draft=SKILL_ID)
                for draft in review.drafts
                if draft.kind == "skill"
            ]
            return [*(f"{skill.name} {skill.description}" for skill in known), *waiting]
        facts = self._journeyman.facts.list(self._session.project)
        files = Checkout(find_root(Path(self._session.cwd))).instructions
        lines = [line for text in files.values() for line in text.splitlines() if line.strip()]
        return [*(fact.text for fact in facts if fact.state != "dropped"), *lines]

    def _confirms(self, evidence: Evidence, fact: Fact) -> bool:
        """Whether this session is the second one that shows a draft. Only what the person said
        counts: two sessions may have read the same wrong text.
        """
        sessions, own = self._journeyman.sessions, self._session.id
        family = {one.id for one in (*sessions.ancestors(own), *sessions.children(own))} | {own}
        reviews = self._journeyman.reviews.store.list(draft=fact.id)
        shown = {*fact.sessions, *(review.session for review in reviews)}
        return evidence.is_from_user and not shown <= family
