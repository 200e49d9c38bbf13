"""What a notice says: whose request, which details with secrets hidden, the agent's words marked as
its own, until when, and where to decide. Pure; how it is sent is left to the channels.
"""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct

from journeyman.confirm.masking import masked_beside, masked_text
from journeyman.confirm.shown_text import visible
from journeyman.records.confirmation import Confirmation

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9]+(?:[._:/-][A-Za-z0-9]+)*")
_LONGEST_NAME: Final = 60
_LONGEST_FACT: Final = 200
_AUDIT_DIGITS: Final = 16

# Signs with which chat services call people, build links or draw pictures. Each is shown by its
# number instead, so that the only link in a notice is the page's, and nobody is called by an agent.
_LIVE: Final = re.compile(
    r"@(?=(?:everyone|here|channel|all|room|group|team|online)\b)"  # calls a whole room
    r"|(?<![\w.+-])@(?=\w)"  # calls one person; mail addresses stay as they are
    r"|<(?=[@!#&:/a-z])"  # <!channel>, <@123>, <a:b:1>, <https://…|Approve>
    r"|(?<=[a-z0-9+.-]):(?=//)"  # https://…
    r"|(?<=\bwww)\.",
    re.IGNORECASE,
)
_MARKDOWN: Final = frozenset("\\`*_{}[]()<>#+-.!|~=&")

DETAILS: Final = "Details (secrets are hidden):"
WORDS: Final = "The agent's own words, checked by nobody:"


class NoticeText(Struct, frozen=True, kw_only=True):
    """A notice in parts, so that what does not fit is cut from what the agent sent and never from
    what the service says.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    link: str
    details: tuple[str, ...]
    words: tuple[str, ...]
    foot: str
    hides: bool = False
    """Whether a parameter, or a part of one, is not shown because it looks like a secret."""

    def plain(self, limit: int | None = None) -> str:
        """As plain text without the title, of at most so many characters as far as the fixed part
        allows.
        """
        return self._laid_out(limit, escape=str, link=self.link, line_end="\n")

    def shows_all(self, limit: int) -> bool:
        """Whether nothing of what would run is hidden or cut in a text of so many characters."""
        return not self.hides and _size(self.plain()) <= limit

    def markdown(self, limit: int | None = None) -> str:
        """As Markdown that shows the same characters as the plain text does."""
        return self._laid_out(limit, escape=_escaped, link=f"<{self.link}>", line_end="  \n")

    def _laid_out(
        self, limit: int | None, *, escape: Callable[[str], str], link: str, line_end: str
    ) -> str:
        facts = (f"{label}: {''.join(map(escape, value))}" for label, value in self.facts)
        above = "".join(f"{line}{line_end}" for line in (*facts, f"Open: {link}"))
        room = None if limit is None else limit - _size(above) - _size(self.foot)
        return above + _fitted(self._sent_by_agent(escape, line_end), room) + self.foot

    def _sent_by_agent(self, escape: Callable[[str], str], line_end: str) -> "Iterator[_Piece]":
        """What is shown of the agent's, in pieces that are shown whole or not at all."""
        for heading, lines in ((DETAILS, self.details), (WORDS, self.words)):
            if lines:
                yield f"{heading}{line_end}", 0
            for line in lines:
                # Every line is marked, so that none can pass for a line of the service's.
                yield "> ", 0
                yield from ((escape(character), 1) for character in line)
                yield line_end, 0


_Piece = tuple[str, int]
"""What is shown, and how many of the agent's characters it stands for."""


def notice_of(
    confirmation: Confirmation,
    *,
    page_link: str,
    audit_head: str,
    about: Literal["new", "again"] = "new",
) -> NoticeText:
    """The notice of a confirmation that waits. `audit_head` is the audit's newest entry as
    `seq:digest`; `again` marks a notice that was perhaps sent before.
    """
    # What a parameter gives away is hidden wherever else it stands, before an edit too.
    beside = {"now": confirmation.approved_details}
    if confirmation.edited is not None:
        beside["asked"] = confirmation.details
    texts = (confirmation.action, confirmation.claimed, confirmation.description)
    shown, (action, claimed, words) = masked_beside(beside, texts)
    action, claimed = inert(action), inert(claimed)
    return NoticeText(
        title=title_of(confirmation, action, about),
        facts=tuple(_facts(confirmation, action, claimed)),
        link=page_link,
        details=tuple(
            inert(f"{name}: {_as_json(value)}") for name, value in shown.get("now", shown).items()
        ),
        words=tuple(inert(line) for line in words.split("\n")),
        foot=_audit_line(audit_head),
        hides=shown != beside,
    )


def inert(text: str) -> str:
    """One line of an agent's text: hidden characters visible, nothing in it live in a chat."""
    return _LIVE.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", visible(text))


def outcome_of(confirmation: Confirmation) -> str:
    """One line on where a confirmation stands."""
    by = inert(confirmation.settled_by)
    match confirmation.status:
        case "pending":
            return f"Waiting: {confirmation.approvals} of {confirmation.quorum} said yes"
        case "denied":
            reason = _shortened(inert(masked_text(confirmation.reason)))
            return f"DENIED by {by}" + (f": {reason}" if reason else "")
        case "expired":
            return "EXPIRED: nobody decided in time, so it is not done"
        case "cancelled":
            return f"CANCELLED by {by}"
        case "auto_approved":
            return "APPROVED by the whitelist"
        case "approved" | "redeemed":
            return f"APPROVED by {by}"


def title_of(confirmation: Confirmation, action: str, about: Literal["new", "again"]) -> str:
    """A line that says what waits; `action` is its name with nothing live or secret in it."""
    # Services take the title for words of ours and escape little in it: only a plain name goes in.
    is_plain = len(action) <= _LONGEST_NAME and _PLAIN_NAME.fullmatch(action)
    what = action if is_plain else "an action"
    again = " (told again)" if about == "again" else ""
    return f"{confirmation.short_id}: {what} waits for your decision{again}"


def _facts(confirmation: Confirmation, action: str, claimed: str) -> Iterator[tuple[str, str]]:
    yield "Id", confirmation.short_id
    yield "Action", _shortened(action)
    yield "Tier", confirmation.tier
    calls_itself = f', calls itself "{_shortened(claimed)}"' if claimed else ""
    yield "Asked for by", f"{_shortened(inert(confirmation.requester))}{calls_itself}"
    if confirmation.quorum > 1:
        yield "Needs", f"{confirmation.quorum} people, has {confirmation.approvals}"
    expires = datetime.fromtimestamp(confirmation.expires_at, UTC)
    yield "Expires", f"{expires:%Y-%m-%d %H:%M:%S} UTC; then it is not done"


def _audit_line(head: str) -> str:
    seq, _, digest = head.partition(":")
    short = digest.removeprefix("sha256:")[:_AUDIT_DIGITS]
    return f"audit {seq}:{short}…" if short else ""


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def _shortened(text: str) -> str:
    over = len(text) - _LONGEST_FACT
    return text if over <= 0 else f"{text[:_LONGEST_FACT]}… ({over} more characters)"


def _escaped(character: str) -> str:
    return f"\\{character}" if character in _MARKDOWN else character


def _size(text: str) -> int:
    # As Telegram counts, which counts the most: in UTF-16 units.
    return len(text) + sum(character > "\uffff" for character in text)


def _fitted(pieces: Iterator[_Piece], room: int | None) -> str:
    """The pieces, as many as fit, and how much of the agent's text is not among them."""
    everything = list(pieces)
    if room is None or sum(_size(piece) for piece, _ in everything) <= room:
        return "".join(piece for piece, _ in everything)
    all_of_it = sum(characters for _, characters in everything)
    room -= _size(_more(all_of_it))
    shown: list[str] = []
    left = all_of_it
    for piece, characters in everything:
        room -= _size(piece)
        if room < 0:
            break
        shown.append(piece)
        left -= characters
    return "".join(shown) + _more(left)


def _more(characters: int) -> str:
    return f"\n{characters} more characters: open the page\n"
