"""A Claude Code log of any size: the corpus's transcripts, repeated under fresh ids."""

from pathlib import Path

from journeyman.testing.claude_code_log import encode_lines, transcribe
from journeyman.testing.corpus import play_all
from journeyman.testing.scripts import claude_code_scripts

_SPREAD = 2_654_435_761
"""Odd, so that multiplying by it modulo 2**32 never gives the same stamp twice."""


def write_large_claude_log(path: Path, size_bytes: int) -> int:
    """Write whole sessions, one after the other, until the file has at least this size.

    The scripts are played once. Every id of a session contains its stamp, so a copy with fresh
    ids is one replacement of text. Returns the number of sessions.
    """
    transcripts = [transcribe(played) for played in play_all(claude_code_scripts())]
    texts = [(encode_lines(t.main), t.stamp.encode()) for t in transcripts]
    path.parent.mkdir(parents=True, exist_ok=True)
    written = sessions = 0
    with path.open("wb") as file:
        while written < size_bytes:
            text, stamp = texts[sessions % len(texts)]
            sessions += 1
            fresh = b"%08x" % (sessions * _SPREAD % 2**32)
            written += file.write(text.replace(stamp, fresh))
    return sessions
