"""The text of a notice: the requester, the details with secrets masked, the agent's own words
marked as such, when it expires, and where to decide.
"""

import json
import math
import re
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from journeyman.records.confirmation import Confirmation
from journeyman.redaction.masking import mask_parameters_and_texts
from journeyman.text.display import escape_live_text
from journeyman.text.truncation import fit_pieces, utf16_length

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9]+(?:[._:/-][A-Za-z0-9]+)*")
_MAX_NAME_LENGTH: Final = 60
_MAX_FACT_LENGTH: Final = 200
_AUDIT_DIGITS: Final = 16
_MARKDOWN: Final = frozenset("\\`*_{}[]()<>#+-.!|~=&")
_OMITTED: Final = "\n{} more characters: open the page\n"

DETAILS_HEADING: Final = "Details (secrets are hidden):"
WORDS_HEADING: Final = "The agent's own words (not verified):"


class NoticeText(Struct, frozen=True, kw_only=True):
    """A notice in parts: if it is too long, text from the agent is cut and never what the service
    itself states.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    link: str
    details: tuple[str, ...]
    words: tuple[str, ...]
    footer: str

    def body(self, limit: int | None = None, is_markdown: bool = False) -> str:  # noqa: FBT001, FBT002 - as a BodyWriter
        """Return the text without the title, of up to `limit` UTF-16 units; more only if the fixed
        part alone is longer. Markdown renders as the same characters as the plain text.
        """

        def escape(character: str) -> str:
            return f"\\{character}" if is_markdown and character in _MARKDOWN else character

        link = f"<{self.link}>" if is_markdown else self.link
        line_end = "  \n" if is_markdown else "\n"
        facts = (f"{label}: {''.join(map(escape, value))}" for label, value in self.facts)
        header = "".join(f"{line}{line_end}" for line in (*facts, f"Open: {link}"))
        # Text from the agent, in pieces that are shown whole or not at all, each with the number
        # of the agent's characters in it. Every line is quoted, so that none can pass for a line
        # of the service.
        pieces: list[tuple[str, int]] = []
        for heading, lines in ((DETAILS_HEADING, self.details), (WORDS_HEADING, self.words)):
            pieces += [(f"{heading}{line_end}", 0)] if lines else []
            for line in lines:
                pieces += [("> ", 0), *((escape(char), 1) for char in line), (line_end, 0)]
        fixed = utf16_length(header) + utf16_length(self.footer)
        room = math.inf if limit is None else limit - fixed
        return header + fit_pieces(pieces, room, _OMITTED) + self.footer


def confirmation_notice(
    confirmation: Confirmation, *, page_link: str, audit_head: str
) -> NoticeText:
    """Return the notice of a waiting confirmation. `audit_head` is the newest audit entry as
    `seq:digest`.
    """
    # A secret revealed by a parameter is hidden everywhere, even if an edit removed it.
    parameters = {"now": confirmation.approved_details}
    if confirmation.edited is not None:
        parameters["original"] = confirmation.details
    texts = (confirmation.action, confirmation.claimed, confirmation.description)
    shown, (action, claimed, words) = mask_parameters_and_texts(parameters, texts)
    action, claimed = escape_live_text(action), escape_live_text(claimed)
    requester = _shorten(escape_live_text(confirmation.requester))
    expires = datetime.fromtimestamp(confirmation.expires_at, UTC)
    facts = {
        "Id": confirmation.short_id,
        "Action": _shorten(action),
        "Tier": confirmation.tier,
        "Requested by": requester + (f', calls itself "{_shorten(claimed)}"' if claimed else ""),
        "Needs": f"{confirmation.quorum} people, has {confirmation.approvals}",
        "Expires": f"{expires:%Y-%m-%d %H:%M:%S} UTC; without approval it is not done",
    }
    if confirmation.quorum == 1:
        del facts["Needs"]
    seq, _, digest = audit_head.partition(":")
    digest = digest.removeprefix("sha256:")[:_AUDIT_DIGITS]
    return NoticeText(
        title=notice_title(confirmation, action),
        facts=tuple(facts.items()),
        link=page_link,
        details=tuple(
            escape_live_text(f"{name}: {json.dumps(value, ensure_ascii=False)}")
            for name, value in shown.get("now", shown).items()
        ),
        words=tuple(escape_live_text(line) for line in words.split("\n")),
        footer=f"audit {seq}:{digest}…" if digest else "",
    )


def notice_title(confirmation: Confirmation, action: str) -> str:
    """Return the title of a notice. `action` must already be escaped and free of secrets."""
    # Services trust titles and escape little in them, so only a plain name is included.
    is_plain = len(action) <= _MAX_NAME_LENGTH and _PLAIN_NAME.fullmatch(action)
    subject = action if is_plain else "an action"
    return f"{confirmation.short_id}: {subject} waits for your decision"


def _shorten(text: str) -> str:
    excess = len(text) - _MAX_FACT_LENGTH
    return text if excess <= 0 else f"{text[:_MAX_FACT_LENGTH]}… ({excess} more characters)"
