"""Generates the sample corpus that the package ships: scripted agents really execute their calls,
and what happened is written in four log formats. Two builds produce the same files (for Hermes: the
same rows). To build the archive again: python -m tests.samples.generator
"""

import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from tests.samples import errands
from tests.samples.claude_code_log import encode_lines, transcribe
from tests.samples.codex_log import rollout_lines
from tests.samples.hermes_log import chat_record, split_sessions, write_state
from tests.samples.sample_projects import TEXTS, project_files
from tests.samples.script import (
    AgentMessage,
    Compression,
    PlayedCall,
    PlayedSession,
    Script,
    SessionEvent,
    UserMessage,
    play,
)
from tests.samples.workshop import WORK, Workshop, install_python

import journeyman.testing
from journeyman.testing.corpus import Corpus, SampleSession, Source

_FIRST_DAY = datetime(2026, 10, 1, 8, 30, tzinfo=UTC).timestamp()
_SPACING_S = 15 * 3600 + 1234
_ARCHIVED_AT = (2026, 10, 1, 0, 0, 0)


def generate_corpus(folder: Path) -> Corpus:
    """Play all scripts and write their logs below the folder, which is created if necessary."""
    by_source: dict[str, list[PlayedSession]] = {}
    for played in play_all(scripts()):
        by_source.setdefault(played.script.source, []).append(played)
    return Corpus(
        folder=folder,
        sessions=(
            *_write_claude_code(folder, by_source["claude"]),
            *_write_codex(folder, by_source["codex"]),
            *_write_hermes(folder, by_source["hermes"]),
            *_write_chat(folder, by_source["chat"]),
        ),
    )


def generate_lists(folder: Path) -> Path:
    """Write only the sample session that keeps lists, to a log of its own. It is enough to start an
    agent warm on such a task. Return the path of the log.
    """
    (played,) = play_all([script for script in scripts() if script.title == "Lists"])
    log = folder / "lists" / "state.db"
    write_state(log, split_sessions(played, rotate=False))
    return log


def scripts() -> list[Script]:
    """Return the sessions of `projects/scripts.toml`."""
    rows = tomllib.loads((TEXTS / "scripts.toml").read_text("utf-8"))["script"]
    parsed = []
    for row in rows:
        errand_steps = (getattr(errands, name)(*args) for name, *args in row.pop("errands"))
        steps = [step for errand in errand_steps for step in errand][: row.pop("cut", None)]
        if row["source"] == "codex":
            steps = errands.all_in_shell(steps)
        parsed.append(Script(steps=tuple(steps), **row))
    return parsed


def play_all(to_play: Sequence[Script]) -> list[PlayedSession]:
    """Execute scripts, each in a workshop of its own, several at a time."""
    with tempfile.TemporaryDirectory(prefix="journeyman-") as folder:
        python = install_python(Path(folder, "bin"))

        def run(number: int, script: Script) -> PlayedSession:
            workshop = Workshop(
                Path(folder, f"{number:02d}"),
                script.project,
                project_files(script.project, script.bugs),
                python=python,
                read_before_edit=script.source == "claude",
            )
            return play(script, workshop.perform, started_at=_FIRST_DAY + number * _SPACING_S)

        with ThreadPoolExecutor(max_workers=4) as pool:
            return list(pool.map(run, range(len(to_play)), to_play))


def _write_claude_code(folder: Path, sessions: Sequence[PlayedSession]) -> Iterator[SampleSession]:
    for played in sessions:
        transcripts = transcribe(played)
        project = f"{WORK}/{played.script.project}".replace("/", "-")
        project_folder = folder / "claude" / "projects" / project
        session = transcripts.session
        log = _write(project_folder / f"{session}.jsonl", encode_lines(transcripts.main))
        yield _describe(played, played.events, session, "claude_code", log)
        delegated = [call for event in played.events for call in event.calls if call.subagent]
        for call, (agent, lines) in zip(delegated, transcripts.subagents.items(), strict=True):
            log = project_folder / session / "subagents" / f"agent-{agent}.jsonl"
            prompt = UserMessage(text=call.request.arguments["prompt"])
            events = (SessionEvent(at=call.subagent[0].at, step=prompt), *call.subagent)
            _write(log, encode_lines(lines))
            yield _describe(
                played, events, agent, "claude_code", log, parent=session, subagent=True
            )


def _write_codex(folder: Path, sessions: Sequence[PlayedSession]) -> Iterator[SampleSession]:
    for played in sessions:
        session, lines = rollout_lines(played)
        started = datetime.fromtimestamp(played.events[0].at, UTC)
        name = f"rollout-{started:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
        day_folder = folder / "codex" / "sessions" / f"{started:%Y/%m/%d}"
        log = _write(day_folder / name, encode_lines(lines))
        yield _describe(played, played.events, session, "codex", log)


def _write_hermes(folder: Path, sessions: Sequence[PlayedSession]) -> Iterator[SampleSession]:
    """Write the Hermes database; only the last session compresses by rotation."""
    log = folder / "hermes" / "state.db"
    parts = [
        part
        for played in sessions
        for part in split_sessions(played, rotate=played is sessions[-1])
    ]
    write_state(log, parts)
    for part in parts:
        yield _describe(part.played, part.events, part.id, "hermes", log, parent=part.parent)


def _write_chat(folder: Path, sessions: Sequence[PlayedSession]) -> Iterator[SampleSession]:
    records = [chat_record(played) for played in sessions]
    log = _write(folder / "chat" / "evaluation.jsonl", encode_lines(records))
    for played, record in zip(sessions, records, strict=True):
        yield _describe(played, played.events, record["id"], "chat", log)


def _write(file: Path, content: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def _describe(
    played: PlayedSession,
    events: Sequence[SessionEvent],
    session: str,
    source: Source,
    log: Path,
    *,
    parent: str = "",
    subagent: bool = False,
) -> SampleSession:
    """Count the messages and calls of a session."""
    calls: list[PlayedCall] = [call for event in events for call in event.calls]
    results = [call.result for call in calls if call.result is not None]
    spoken = sum(isinstance(event.step, AgentMessage | UserMessage) for event in events)
    return SampleSession(
        id=session,
        source=source,
        title=played.script.title,
        log=log,
        parent=parent,
        subagent=subagent,
        messages=spoken + len(results),
        calls=len(calls),
        answered=len(results),
        failed=sum(result.failed for result in results),
        refused=sum(result.kind == "refused" for result in results),
        cancelled=sum(result.kind == "cancelled" for result in results),
        compressions=sum(isinstance(event.step, Compression) for event in events),
    )


def write_archive(archive_file: Path) -> None:
    """Write the corpus, the log of lists and the description of the sessions as one archive."""
    with tempfile.TemporaryDirectory(prefix="journeyman-") as name:
        folder = Path(name)
        corpus = generate_corpus(folder)
        generate_lists(folder)
        sessions = [
            msgspec.structs.replace(one, log=one.log.relative_to(folder)) for one in corpus.sessions
        ]
        _write(folder / "sessions.json", msgspec.json.encode(sessions, enc_hook=Path.as_posix))
        with zipfile.ZipFile(archive_file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for file in sorted(folder.rglob("*.*")):
                if file.is_file():
                    entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _ARCHIVED_AT)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, file.read_bytes())


if __name__ == "__main__":
    write_archive(Path(journeyman.testing.__file__).with_name("samples.zip"))
