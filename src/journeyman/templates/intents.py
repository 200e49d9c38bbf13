"""What a pattern was for, in one short text: what was wanted and, if more was said about it, the
last of that. It is made short after it is redacted: half a secret is not known as one.
"""

INTENT_LIMIT = 400
"""Characters of an intent: enough to tell what was wanted."""

_ANSWER_LIMIT = 160
_READ = 4_000
"""How much of what was said is looked at: enough that what is shown of it is whole."""

_THEN = "\x1f"
"""Stands between the two while they are redacted."""


def joined(wanted: str, answer: str = "") -> str:
    """What was said, as one text to be redacted."""
    said = [text[:_READ].replace(_THEN, " ") for text in (wanted, answer) if text.strip()]
    return _THEN.join(said)


def clipped(intent: str) -> str:
    """A redacted intent on one line, no longer than it should be."""
    wanted, _, answer = (" ".join(part.split()) for part in intent.partition(_THEN))
    if not answer:
        return _clip(wanted, INTENT_LIMIT)
    answer = _clip(answer, _ANSWER_LIMIT)
    return f"{_clip(wanted, INTENT_LIMIT - len(answer) - 3)} … {answer}"


def _clip(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return (cut.rpartition(" ")[0] if " " in cut[limit // 2 :] else cut) + "…"
