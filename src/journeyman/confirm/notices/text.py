"""What a notice says: whose request, which details with secrets hidden, the agent's words marked as
its own, until when, and where to decide; and what a channel is that sends it.
"""

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct

from journeyman.confirm.masking import masked_beside, masked_text
from journeyman.confirm.shown_text import visible
from journeyman.records.confirmation import Confirmation, ConfirmationStatus

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

_OUTCOMES: Final[dict[ConfirmationStatus, str]] = {
    "pending": "Waiting: {of.approvals} of {of.quorum} said yes",
    "approved": "APPROVED by {by}",
    "redeemed": "APPROVED by {by}",
    "auto_approved": "APPROVED by the whitelist",
    "denied": "DENIED by {by}",
    "expired": "EXPIRED: nobody decided in time, so it is not done",
    "cancelled": "CANCELLED by {by}",
}
DETAILS: Final = "Details (secrets are hidden):"
WORDS: Final = "The agent's own words, checked by nobody:"

About = Literal["new", "again"]
"""Whether a notice was perhaps sent before."""


class NotTold(Exception):
    """A way did not work. The reason is for people and for the log: no address, no secret."""


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

        def escape(character: str) -> str:
            return f"\\{character}" if character in _MARKDOWN else character

        return self._laid_out(limit, escape=escape, link=f"<{self.link}>", line_end="  \n")

    def _laid_out(
        self, limit: int | None, *, escape: Callable[[str], str], link: str, line_end: str
    ) -> str:
        facts = (f"{label}: {''.join(map(escape, value))}" for label, value in self.facts)
        above = "".join(f"{line}{line_end}" for line in (*facts, f"Open: {link}"))
        # What is shown of the agent's, in pieces that are shown whole or not at all, each with how
        # many of its characters it stands for. Every line is marked, so that none can pass for a
        # line of the service's.
        pieces: list[tuple[str, int]] = []
        for heading, lines in ((DETAILS, self.details), (WORDS, self.words)):
            pieces += [(f"{heading}{line_end}", 0)] if lines else []
            for line in lines:
                pieces += [("> ", 0), *((escape(one), 1) for one in line), (line_end, 0)]
        room = math.inf if limit is None else limit - _size(above) - _size(self.foot)
        return above + _fitted(pieces, room) + self.foot


class NoticeChannel:
    """One way to tell people. `name` is the service's, never the address."""

    name: str
    follows_up = False
    """Whether it also shows what became of a confirmation."""

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:
        """Send a notice. Raises NotTold when nobody was told."""
        raise NotImplementedError

    def settled(self, confirmation: Confirmation) -> None:
        """Show where the notice was sent that it is settled. Raises NotTold."""

    def start(self) -> None:
        """Begin to take answers, if people can answer here."""

    def stop(self) -> None:
        """Take no more answers."""


def notice_of(
    confirmation: Confirmation,
    *,
    page_link: str,
    audit_head: str,
    about: About = "new",
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
    calls_itself = f', calls itself "{_shortened(claimed)}"' if claimed else ""
    expires = datetime.fromtimestamp(confirmation.expires_at, UTC)
    facts = {
        "Id": confirmation.short_id,
        "Action": _shortened(action),
        "Tier": confirmation.tier,
        "Asked for by": f"{_shortened(inert(confirmation.requester))}{calls_itself}",
        "Needs": f"{confirmation.quorum} people, has {confirmation.approvals}",
        "Expires": f"{expires:%Y-%m-%d %H:%M:%S} UTC; then it is not done",
    }
    if confirmation.quorum == 1:
        del facts["Needs"]
    seq, _, digest = audit_head.partition(":")
    head = digest.removeprefix("sha256:")[:_AUDIT_DIGITS]
    return NoticeText(
        title=title_of(confirmation, action, about),
        facts=tuple(facts.items()),
        link=page_link,
        details=tuple(
            inert(f"{name}: {json.dumps(value, ensure_ascii=False)}")
            for name, value in shown.get("now", shown).items()
        ),
        words=tuple(inert(line) for line in words.split("\n")),
        foot=f"audit {seq}:{head}…" if head else "",
        hides=shown != beside,
    )


def inert(text: str) -> str:
    """One line of an agent's text: hidden characters visible, nothing in it live in a chat."""
    return _LIVE.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", visible(text))


def outcome_of(confirmation: Confirmation) -> str:
    """One line on where a confirmation stands."""
    reason = ""
    if confirmation.status == "denied" and confirmation.reason:
        reason = f": {_shortened(inert(masked_text(confirmation.reason)))}"
    by = f"{inert(confirmation.settled_by)}{reason}"
    return _OUTCOMES[confirmation.status].format(by=by, of=confirmation)


def title_of(confirmation: Confirmation, action: str, about: About) -> str:
    """A line that says what waits; `action` is its name with nothing live or secret in it."""
    # Services take the title for words of ours and escape little in it: only a plain name goes in.
    is_plain = len(action) <= _LONGEST_NAME and _PLAIN_NAME.fullmatch(action)
    what = action if is_plain else "an action"
    again = " (told again)" if about == "again" else ""
    return f"{confirmation.short_id}: {what} waits for your decision{again}"


def _shortened(text: str) -> str:
    over = len(text) - _LONGEST_FACT
    return text if over <= 0 else f"{text[:_LONGEST_FACT]}… ({over} more characters)"


def _size(text: str) -> int:
    # As Telegram counts, which counts the most: in UTF-16 units.
    return len(text) + sum(character > "\uffff" for character in text)


def _fitted(pieces: list[tuple[str, int]], room: float) -> str:
    """The pieces, as many as fit, and how much of the agent's text is not among them."""
    if sum(_size(piece) for piece, _ in pieces) <= room:
        return "".join(piece for piece, _ in pieces)
    more = "\n{} more characters: open the page\n"
    left = sum(characters for _, characters in pieces)
    room -= _size(more.format(left))
    shown = []
    for piece, characters in pieces:
        room -= _size(piece)
        if room < 0:
            break
        shown.append(piece)
        left -= characters
    return "".join(shown) + more.format(left)
