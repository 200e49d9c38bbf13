"""What all recorders need: ids that are the same in every build, times as text, token estimates."""

import base64
import difflib
import hashlib
from datetime import UTC, datetime

from journeyman.testing.script import Turn


class Ids:
    """Ids for one session, made from its name.

    All of them contain the same `stamp` of eight hexadecimal digits, so that a finished log can
    be given fresh ids by replacing one piece of text.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self.stamp = self._hex(8)
        rest = self._hex(23)
        self.session = f"{self.stamp}-{rest[:4]}-4{rest[4:7]}-a{rest[7:10]}-{rest[11:]}"

    def uuid(self) -> str:
        h = self._hex(22)
        return f"{h[:8]}-{h[8:12]}-4{h[12:15]}-b{h[15:18]}-{h[18:]}{self.stamp}"

    def token(self, prefix: str, length: int) -> str:
        """An id such as `toolu_01…`: a prefix, then `length` characters that end in the stamp."""
        return f"{prefix}{self._hex(length - 8)}{self.stamp}"

    def scribble(self, length: int) -> str:
        """Text that looks encrypted, as signatures of hidden reasoning do."""
        seed = self._hex(32).encode()
        blocks = (hashlib.blake2b(seed + bytes([n])).digest() for n in range(length // 85 + 1))
        return base64.b64encode(b"".join(blocks)).decode()[:length]

    def _hex(self, length: int) -> str:
        self._count += 1
        key = f"{self._name} {self._count}".encode()
        return hashlib.blake2b(key, digest_size=32).hexdigest()[:length]


def iso(at: float) -> str:
    """A time as the recorders write it: 2026-10-05T09:12:33.120Z."""
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def estimate_tokens(*texts: str) -> int:
    """About how many tokens a text has."""
    return 1 + sum(len(text) for text in texts) // 4


def spoken(turn: Turn) -> int:
    """About how many tokens the agent produced in a turn."""
    arguments = "".join(str(reply.ask.arguments) for reply in turn.replies)
    return estimate_tokens(turn.act.text, turn.act.thought, arguments)


def heard_back(turn: Turn) -> int:
    """About how many tokens the results of a turn have."""
    results = [reply.result for reply in turn.replies if reply.result]
    return estimate_tokens(*(f"{r.text}{r.errors}{r.after}" for r in results))


def joined(*parts: str) -> str:
    """Output and error output one after the other, as people see them on a terminal."""
    return "\n".join(part.rstrip("\n") for part in parts if part.strip())


def unified_diff(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a{path}", f"b{path}", lineterm=""
    )
    return "\n".join(lines)
