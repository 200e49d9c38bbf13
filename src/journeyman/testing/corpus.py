"""The sample corpus: about thirty sessions of scripted agents that really execute their calls,
recorded as four kinds of logs. Two builds give the same files (for Hermes: the same rows).
"""

import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct

from journeyman.testing import errands
from journeyman.testing.claude_code_log import encode_lines, transcribe
from journeyman.testing.codex_log import roll_out
from journeyman.testing.hermes_log import chat_record, split_sessions, write_state
from journeyman.testing.sample_projects import TEXTS, project_files
from journeyman.testing.script import (
    Act,
    Compress,
    Event,
    Played,
    Reply,
    Script,
    UserSays,
    play,
)
from journeyman.testing.workshop import WORK, Workshop, install_python

Source = Literal["claude_code", "codex", "hermes", "chat"]

_FIRST_DAY = datetime(2026, 10, 1, 8, 30, tzinfo=UTC).timestamp()
_SPACING_S = 15 * 3600 + 1234


class SampleSession(Struct, frozen=True, kw_only=True):
    """What the writer knows about one recorded session.

    `id` is the recorder's own; a subagent has its session as `parent`, and so has a session that
    goes on after a rotation. `messages` counts user messages, agent messages and results once
    each, without what the harness says on its own. `failed` leaves out refused and cancelled
    calls.
    """

    id: str
    source: Source
    title: str
    log: Path
    parent: str = ""
    subagent: bool = False
    messages: int
    calls: int
    answered: int
    failed: int
    refused: int
    cancelled: int
    compressions: int = 0


class Corpus(Struct, frozen=True, kw_only=True):
    """Where the logs are and what is in them."""

    folder: Path
    sessions: tuple[SampleSession, ...]

    def of(self, source: Source) -> tuple[SampleSession, ...]:
        """The sessions of one source, without those of subagents."""
        return tuple(s for s in self.sessions if s.source == source and not s.subagent)

    def logs(self, source: Source) -> tuple[Path, ...]:
        """The log files of one source; the Hermes database and the chat file hold many sessions."""
        return tuple(sorted({s.log for s in self.sessions if s.source == source}))


def write_corpus(folder: Path) -> Corpus:
    """Play all scripts and write their logs below the folder, which is made if it is missing."""
    played: dict[str, list[Played]] = {}
    for one in play_all(scripts()):
        played.setdefault(one.script.source, []).append(one)
    sessions = [
        *_write_claude_code(folder, played["claude"]),
        *_write_codex(folder, played["codex"]),
    ]
    state, hermes = folder / "hermes" / "state.db", played["hermes"]
    stored = [part for one in hermes for part in split_sessions(one, rotate=one is hermes[-1])]
    write_state(state, stored)
    sessions += [
        _describe(part.played, part.events, part.id, "hermes", state, parent=part.parent)
        for part in stored
    ]
    records = [chat_record(one) for one in played["chat"]]
    chat = _write(folder / "chat" / "evaluation.jsonl", encode_lines(records))
    for one, record in zip(played["chat"], records, strict=True):
        sessions.append(_describe(one, one.events, record["id"], "chat", chat))
    return Corpus(folder=folder, sessions=tuple(sessions))


def write_lists(folder: Path) -> Path:
    """The one sample session that keeps lists, in a log of its own: enough to start an agent warm
    on such an errand.
    """
    (played,) = play_all([one for one in scripts() if one.title == "Lists"])
    file = folder / "hermes" / "state.db"
    write_state(file, split_sessions(played, rotate=False))
    return file


def scripts() -> list[Script]:
    """The sessions of `projects/scripts.toml`."""
    rows = tomllib.loads((TEXTS / "scripts.toml").read_text("utf-8"))["script"]
    made = []
    for row in rows:
        calls = (getattr(errands, name)(*given) for name, *given in row.pop("errands"))
        steps = [step for errand in calls for step in errand][: row.pop("cut", None)]
        if row["source"] == "codex":
            steps = errands.all_in_shell(steps)
        made.append(Script(steps=tuple(steps), **row))
    return made


def play_all(given: Sequence[Script]) -> list[Played]:
    """Execute scripts, each in a workshop of its own, several at a time."""
    with tempfile.TemporaryDirectory(prefix="journeyman-") as folder:
        python = install_python(Path(folder, "bin"))

        def run(number: int, script: Script) -> Played:
            workshop = Workshop(
                Path(folder, f"{number:02d}"),
                script.project,
                project_files(script.project, script.bugs),
                python=python,
                read_before_edit=script.source == "claude",
            )
            return play(script, workshop.perform, started_at=_FIRST_DAY + number * _SPACING_S)

        with ThreadPoolExecutor(max_workers=4) as pool:
            return list(pool.map(run, range(len(given)), given))


def _write_claude_code(folder: Path, played: Sequence[Played]) -> Iterator[SampleSession]:
    for one in played:
        transcripts = transcribe(one)
        place = folder / "claude" / "projects" / f"{WORK}/{one.script.project}".replace("/", "-")
        session = transcripts.session
        file = _write(place / f"{session}.jsonl", encode_lines(transcripts.main))
        yield _describe(one, one.events, session, "claude_code", file)
        delegated = [reply for event in one.events for reply in event.replies if reply.inner]
        for reply, (agent, lines) in zip(delegated, transcripts.subagents.items(), strict=True):
            log = place / session / "subagents" / f"agent-{agent}.jsonl"
            prompt = UserSays(text=reply.ask.arguments["prompt"])
            events = (Event(at=reply.inner[0].at, step=prompt), *reply.inner)
            _write(log, encode_lines(lines))
            yield _describe(one, events, agent, "claude_code", log, parent=session, subagent=True)


def _write_codex(folder: Path, played: Sequence[Played]) -> Iterator[SampleSession]:
    for one in played:
        session, lines = roll_out(one)
        began = datetime.fromtimestamp(one.events[0].at, UTC)
        name = f"rollout-{began:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
        place = folder / "codex" / "sessions" / f"{began:%Y/%m/%d}"
        log = _write(place / name, encode_lines(lines))
        yield _describe(one, one.events, session, "codex", log)


def _write(file: Path, content: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def _describe(
    one: Played,
    events: Sequence[Event],
    session: str,
    source: Source,
    log: Path,
    *,
    parent: str = "",
    subagent: bool = False,
) -> SampleSession:
    """Count what happened in a session."""
    replies: list[Reply] = [reply for event in events for reply in event.replies]
    results = [reply.result for reply in replies if reply.result is not None]
    spoken = sum(isinstance(event.step, Act | UserSays) for event in events)
    return SampleSession(
        id=session,
        source=source,
        title=one.script.title,
        log=log,
        parent=parent,
        subagent=subagent,
        messages=spoken + len(results),
        calls=len(replies),
        answered=len(results),
        failed=sum(result.failed for result in results),
        refused=sum(result.kind == "refused" for result in results),
        cancelled=sum(result.kind == "cancelled" for result in results),
        compressions=sum(isinstance(event.step, Compress) for event in events),
    )
