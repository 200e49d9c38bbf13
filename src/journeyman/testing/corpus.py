"""The sample corpus: about forty sessions of scripted agents, recorded as four kinds of logs.

The agents really execute their calls in a temporary folder. Two builds give the same files (for
Hermes: the same rows), on any machine with a POSIX shell.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct

from journeyman.testing.chat_log import chat_record
from journeyman.testing.claude_code_log import Transcripts, encode_lines, transcribe
from journeyman.testing.codex_log import roll_out
from journeyman.testing.hermes_log import HermesSession, sessions_of, write_state
from journeyman.testing.play import play
from journeyman.testing.sample_data import project_files, stock_database
from journeyman.testing.script import Event, Heard, Played, Reply, Script, Turn
from journeyman.testing.scripts import claude_code_scripts, codex_scripts, hermes_scripts
from journeyman.testing.support_desk import SupportDesk, support_scripts
from journeyman.testing.workshop import WORK, Workshop, install_python

Source = Literal["claude_code", "codex", "hermes", "chat"]

_FIRST_DAY = datetime(2026, 10, 1, 8, 30, tzinfo=UTC).timestamp()
_SPACING_S = 15 * 3600 + 1234


class SampleSession(Struct, frozen=True, kw_only=True):
    """What the writer knows about one recorded session.

    `id` is the recorder's own; a subagent has its session as `parent`, and so has a session that
    goes on after a rotation. `messages` counts user messages, agent messages and results once
    each, without what the harness says on its own. `failed` leaves out refused and cancelled
    calls; `recovered` are failed calls that the next call of the same tool put right.
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
    recovered: int
    compressions: int = 0
    reward: float | None = None


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

    def calls(self, source: Source) -> int:
        """The calls of one source, with those of its subagents."""
        return sum(s.calls for s in self.sessions if s.source == source)

    def answered(self, source: Source) -> int:
        """The calls of one source that have a result, with those of its subagents."""
        return sum(s.answered for s in self.sessions if s.source == source)


def write_corpus(folder: Path) -> Corpus:
    """Play all scripts and write their logs below the folder, which is made if it is missing."""
    claude, codex, hermes = claude_code_scripts(), codex_scripts(), hermes_scripts()
    played = play_all([*claude, *codex, *hermes])
    first, second = len(claude), len(claude) + len(codex)
    sessions = [
        *_write_claude_code(folder, played[:first]),
        *_write_codex(folder, played[first:second]),
        *_write_hermes(folder, played[second:]),
        *_write_chat(folder),
    ]
    return Corpus(folder=folder, sessions=tuple(sessions))


def write_lists(folder: Path) -> Path:
    """The one sample session that keeps lists, in a log of its own: enough to start an agent warm
    on such an errand.
    """
    (played,) = play_all([one for one in hermes_scripts() if one.name == "hermes Lists"])
    (session,) = sessions_of(played, rotate=False)
    file = folder / "hermes" / "state.db"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    write_state(file, [session])
    return file


def play_all(scripts: list[Script]) -> list[Played]:
    """Execute scripts, each in a workshop of its own, several at a time."""
    with _workplace() as enter:

        def run(numbered: tuple[int, Script]) -> Played:
            number, script = numbered
            return play(script, enter(number, script), started_at=_start(number))

        with ThreadPoolExecutor(max_workers=4) as pool:
            return list(pool.map(run, enumerate(scripts)))


@contextmanager
def _workplace() -> Iterator[Callable[[int, Script], Workshop]]:
    """A temporary folder and a way to get a workshop in it for each script."""
    with tempfile.TemporaryDirectory(prefix="journeyman-") as folder:
        python = install_python(Path(folder) / "bin")
        stock = {"stock/stock.db": stock_database()}

        def enter(number: int, script: Script) -> Workshop:
            files = project_files(script.bugs) | stock
            told = str(script.steps)
            return Workshop(
                Path(folder) / f"{number:02d}",
                {p: text for p, text in files.items() if _needs(script, told, p.split("/")[0])},
                project=script.project,
                python=python,
                read_before_edit=script.name.startswith("claude "),
            )

        yield enter


def _needs(script: Script, told: str, project: str) -> bool:
    return project == script.project or f"{WORK}/{project}" in told


def _start(number: int) -> float:
    return _FIRST_DAY + number * _SPACING_S


def claude_code_file(folder: Path, project: str, session: str) -> Path:
    """Where Claude Code keeps the transcript of a session."""
    slug = f"{WORK}/{project}".replace("/", "-")
    return folder / "claude" / "projects" / slug / f"{session}.jsonl"


def _write_claude_code(folder: Path, played: Iterable[Played]) -> Iterator[SampleSession]:
    for one in played:
        transcripts = transcribe(one)
        file = claude_code_file(folder, one.script.project, transcripts.session)
        _write(file, encode_lines(transcripts.main))
        yield describe(one, one.events, transcripts.session, "claude_code", file)
        yield from _write_subagents(one, transcripts, file)


def _write_subagents(one: Played, transcripts: Transcripts, main: Path) -> Iterator[SampleSession]:
    delegated = [reply for reply in one.replies if reply.inner]
    for reply, (agent, lines) in zip(delegated, transcripts.subagents.items(), strict=True):
        file = main.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"
        _write(file, encode_lines(lines))
        prompt = Heard(at=reply.inner[0].at, text=reply.ask.arguments["prompt"])
        events: tuple[Event, ...] = (prompt, *reply.inner)
        yield describe(
            one, events, agent, "claude_code", file, parent=transcripts.session, subagent=True
        )


def _write_codex(folder: Path, played: Iterable[Played]) -> Iterator[SampleSession]:
    for number, one in enumerate(played):
        session, lines = roll_out(one, unified_exec=number % 3 == 2)
        began = datetime.fromtimestamp(one.started_at, UTC)
        name = f"rollout-{began:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
        file = folder / "codex" / "sessions" / f"{began:%Y/%m/%d}" / name
        _write(file, encode_lines(lines))
        yield describe(one, one.events, session, "codex", file)


def _write_hermes(folder: Path, played: list[Played]) -> Iterator[SampleSession]:
    file = folder / "hermes" / "state.db"
    sessions: list[HermesSession] = []
    for one in played:
        sessions += sessions_of(one, rotate=one is played[-1])
    file.unlink(missing_ok=True)
    write_state(file, sessions)
    for session in sessions:
        yield describe(
            session.played, session.events, session.id, "hermes", file, parent=session.parent
        )


def _write_chat(folder: Path) -> Iterator[SampleSession]:
    file = folder / "chat" / "support.jsonl"
    lines = []
    for number, script in enumerate(support_scripts()):
        with (
            tempfile.TemporaryDirectory(prefix="journeyman-") as temporary,
            closing(SupportDesk(Path(temporary) / "shop.db")) as desk,
        ):
            one = play(script, desk, started_at=_start(number))
        record = chat_record(one)
        lines.append(record)
        yield describe(one, one.events, record["id"], "chat", file)
    _write(file, encode_lines(lines))


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def describe(
    one: Played,
    events: tuple[Event, ...],
    session: str,
    source: Source,
    log: Path,
    *,
    parent: str = "",
    subagent: bool = False,
) -> SampleSession:
    """Count what happened in a session."""
    replies = [r for event in events if isinstance(event, Turn) for r in event.replies]
    results = [reply.result for reply in replies if reply.result is not None]
    spoken = sum(isinstance(event, Turn | Heard) for event in events)
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
        recovered=_recovered(replies),
        compressions=len(events) - spoken,
        reward=one.script.reward,
    )


def _recovered(replies: list[Reply]) -> int:
    count = 0
    for number, reply in enumerate(replies):
        if reply.result is None or not reply.result.failed:
            continue
        later = (r for r in replies[number + 1 :] if r.ask.tool == reply.ask.tool)
        again = next(later, None)
        count += again is not None and again.result is not None and again.result.kind == "ok"
    return count
