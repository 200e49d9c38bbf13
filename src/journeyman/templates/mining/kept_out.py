"""What one session does not teach because a rule keeps it out, each thing once: calls that a person
would have to confirm, and patterns and episodes whose text instructs its reader.
"""

import hashlib

import msgspec

from journeyman.gate.decision import Decision
from journeyman.records import Call, KeptOut, KeptOutKind, Pattern, Session, Step
from journeyman.records.kept_out import LONGEST_KEPT_OUT
from journeyman.templates.cleaning import find_pattern_suspicion, redacted_line
from journeyman.templates.commands import commands_of
from journeyman.templates.likeness import pattern_id
from journeyman.templates.mining.safety import why_unsafe
from journeyman.templates.summaries import summary
from journeyman.templates.tool_translation import shell_command

_UNCHECKED = "git.unchecked"
_AFTER_UNCHECKED = Decision(
    answer="ask",
    rule=_UNCHECKED,
    reason="It follows a step that skipped the project's checks.",
)
_INSTRUCTS = "Its text instructs whoever reads it."


class KeptOutList:
    """Grows while a session is mined. What a person has `released` is listed, and teaches."""

    def __init__(self, session: Session, released: frozenset[str]) -> None:
        self._session = session
        self._released = released
        self._found: dict[str, KeptOut] = {}
        self._unchecked: set[int] = set()

    @property
    def entries(self) -> tuple[KeptOut, ...]:
        return tuple(self._found.values())

    def may_teach(self, call: Call, number: int, *, is_ok: bool) -> bool:
        """Whether a call for the request with this number is safe. One that would have taught, had
        it been, is listed, and stays listed when a person releases it.
        """
        decision = why_unsafe(call.tool, call.arguments, self._session.cwd)
        if decision is None and number in self._unchecked and _runs_git(call):
            decision = _AFTER_UNCHECKED
        if decision is None:
            return True
        line = shell_command(call.tool, call.arguments)
        kind: KeptOutKind = "command" if line else "call"
        text = redacted_line(line or f"{call.tool} {call.arguments}")
        key = _key(kind, text)
        is_released = key in self._released
        if decision.rule == _UNCHECKED and not is_released:
            self._unchecked.add(number)
        if is_ok:
            self._found.setdefault(
                key,
                KeptOut(
                    key=key,
                    kind=kind,
                    rule=decision.rule,
                    reason=decision.reason,
                    text=summary(text, LONGEST_KEPT_OUT),
                    session=self._session.id,
                    number=number,
                ),
            )
        return is_released

    def was_released(self, call: Call) -> bool:
        """Whether a call that teaches does so only because a person released it."""
        return bool(self._released) and (
            why_unsafe(call.tool, call.arguments, self._session.cwd) is not None
        )

    def reviewed(self, kind: KeptOutKind, pattern: Pattern, number: int) -> Pattern:
        """The pattern as it may be kept: one in quarantine is listed; one that a person released is
        as any other.
        """
        if not pattern.quarantined:
            return pattern
        content = [pattern.intent, *(text for one in pattern.steps for text in _texts(one))]
        key = _key(kind, "\0".join(content))
        # From what is redacted: an excerpt of the rest may cut a secret so that none is recognised.
        suspicion = find_pattern_suspicion(pattern.intent, pattern.steps)
        evidence = suspicion.evidence if suspicion else pattern.intent
        self._found.setdefault(
            key,
            KeptOut(
                key=key,
                kind=kind,
                rule=pattern.quarantined,
                reason=suspicion.reason if suspicion else _INSTRUCTS,
                text=summary(evidence, LONGEST_KEPT_OUT),
                session=self._session.id,
                number=number,
            ),
        )
        if key not in self._released:
            return pattern
        sound = pattern_id(pattern.kind, pattern.intent, pattern.steps)
        return msgspec.structs.replace(pattern, id=sound, quarantined="")


def _runs_git(call: Call) -> bool:
    line = shell_command(call.tool, call.arguments)
    return any(one.name.split()[0] in ("git", "gh") for one in commands_of(line))


def _texts(step: Step) -> tuple[str, str, str]:
    return step.tool, step.arguments, step.result


def _key(kind: KeptOutKind, text: str) -> str:
    return hashlib.sha256(f"{kind}\0{text}".encode()).hexdigest()[:16]
