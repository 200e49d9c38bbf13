"""What may be written down: no secrets, nothing hidden, nothing that tries to instruct the reader.
What secrets and orders look like is for `redaction`; here one text is held against all of it.
"""

import re

from journeyman.redaction.instructions import find_suspicion
from journeyman.redaction.key_names import PLACEHOLDER
from journeyman.redaction.redactor import Redactor
from journeyman.text.invisible import FILLERS

PERSONAL = frozenset(("user", "email", "phone"))
"""What is redacted in patterns but may be remembered: where the user lives on this machine and how
to reach people is what memory is for."""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
# Behind letters beyond ASCII they make emoji and join the letters of some scripts.
_HIDDEN = re.compile(f"(?<![^\x00-\x7f])[\u00ad\u180e\u200b-\u200d\u2060-\u2065\ufeff{FILLERS}]")


def plain(text: str) -> str:
    """A text with one kind of line end and nothing around it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def find_fault(text: str) -> str | None:
    """Why a text may not be kept, as a sentence; None when it may."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return "It holds half a character, which no file can keep."
    odd = _CONTROL.search(text) or _HIDDEN.search(text)
    if odd:
        return f"It holds a character that is not seen (U+{ord(odd[0]):04X}). Leave it out."
    suspicion = find_suspicion([text])
    if suspicion is not None:
        return (
            f"It tries to instruct its reader (rule {suspicion.rule}): “{suspicion.evidence}”. "
            "State the fact instead."
        )
    families = secrets_in(text)
    if families:
        found = ", ".join(families)
        return f"It holds something secret ({found}). Say where it is kept instead."
    return None


def secrets_in(text: str) -> tuple[str, ...]:
    """The kinds of secrets in a text, each once, sorted."""
    redacted = Redactor().text(text)
    if redacted == text:
        return ()
    put = {found[0] for found in PLACEHOLDER.finditer(redacted)}
    were = {found[0] for found in PLACEHOLDER.finditer(text)}
    families = {placeholder[1:].partition(":")[0] for placeholder in put - were}
    return tuple(sorted(families - PERSONAL))


def safe_to_show(text: str, what: str, where: str) -> str:
    """A text for a model: one that tries to instruct its reader, or holds something secret, is
    replaced by a note. Somebody may have written it into the file by hand.
    """
    suspicion, secrets = find_suspicion([text]), secrets_in(text)
    if suspicion is None and not secrets:
        return text
    why = f"tries to instruct its reader ({suspicion.rule})" if suspicion else "holds a secret"
    return f"[BLOCKED: this {what} {why}. It is still in {where}; ask the user about it.]"
