"""Reader for Claude Code transcripts: one JSON object per line, linked to its parent line.

- One model answer spans several lines with the same `message.id`, possibly with the results of its
  first calls in between. The lines are joined, and usage is counted once.
- When the user goes back and asks something else, two prompts share a parent, and everything
  between them was undone.
- Subagents (`isSidechain`) write to the same file or to their own. Each becomes a separate session
  that descends from the main one.
- A compaction starts a new generation of the same session.
- A fork repeats the lines of its parent under its own session id.
- Reading resumes at the first answer that may still gain lines; conversations that were further
  ahead skip the lines they already processed.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from journeyman.logs.claude_chain import HARNESS_PREFIXES, Chain, LineIds
from journeyman.logs.claude_results import (
    Attachment,
    is_not_run,
    opening_of,
    recorded_flags,
    refuser,
    rewritten_call,
    text_of,
)
from journeyman.logs.fields import as_text, seconds
from journeyman.logs.line_reader import BadLine, Line, Lines, read_lines
from journeyman.logs.log_file import LogFile
from journeyman.records import (
    Fragment,
    Lineage,
    LogEvent,
    LogState,
    Message,
    MessageKind,
    ResultFlags,
    Session,
    SessionId,
    Skip,
    ToolCall,
    Usage,
)

_UNSET = Raw()
_decode_any = msgspec.json.Decoder().decode


class _Block(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = _UNSET
    tool_use_id: str | None = None
    content: Raw = _UNSET
    is_error: bool | None = None


class _Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Body(Struct, gc=False):
    id: str | None = None
    model: str | None = None
    content: str | list[_Block] | None = None
    usage: _Usage | None = None
    stop_reason: str | None = None


class _Entry(Struct, rename="camel", gc=False):
    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    timestamp: str | int | float | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    cwd: str | None = None
    git_branch: str | None = None
    entrypoint: str | None = None
    version: str | None = None
    custom_title: str | None = None
    request_session_id: str | None = None
    attachment: Attachment | None = None
    cost_usd: float | None = msgspec.field(name="costUSD", default=None)
    message: _Body | None = None
    tool_use_result: Raw = _UNSET
    tool_denial_kind: Any = None
    permission_decision: Any = None


class ClaudeCodeReader:
    """Reads Claude Code's transcripts, which are in `~/.claude/projects`."""

    name = "claude_code"
    about = "Claude Code transcripts (*.jsonl)"

    def recognises(self, log: LogFile) -> bool:
        return any(
            isinstance(line, dict)
            and "type" in line
            and ("sessionId" in line or "leafUuid" in line)
            and ("uuid" in line or "messageId" in line or "summary" in line or "operation" in line)
            for line in log.first_lines
        )

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        back_to = since.memory.get("back_to") if since else None
        lines = Lines(log, since, back_to=back_to and (back_to[0], back_to[1]))

        def make_handler() -> _Transcript:
            return _Transcript(log.name, since if lines.resumed else None)

        return read_lines(self.name, lines, _Entry, make_handler)


class _Transcript:
    """Splits the lines of one file into its conversations, main ones and subagents'."""

    def __init__(self, path: str, since: LogState | None) -> None:
        memory = since.memory if since else {}
        self.ready: list[LogEvent] = []
        self._path = path
        self._resumed = since is not None
        self._resumed_at = since.offset if since else 0
        self._chains: dict[str, Chain] = {}
        self._saved: dict[str, dict[str, Any]] = dict(memory.get("chains", {}))
        self._line_ids = LineIds(memory.get("copies", {}))
        self._titles: dict[str, str] = dict(memory.get("titles", {}))
        self._created: dict[str, float | None] = {}

    def handle(self, entry: _Entry, line: Line) -> None:
        """Process one line and add complete fragments to `ready`. Raises BadLine."""
        if entry.custom_title and entry.session_id:
            self._titles[entry.session_id] = entry.custom_title
        if entry.type not in ("user", "assistant", "system"):
            if entry.session_id and entry.timestamp and not entry.is_sidechain:
                self._created.setdefault(entry.session_id, seconds(entry.timestamp))
            if entry.attachment is not None and entry.session_id:
                self._add_attachment(entry, entry.attachment, line)
            return
        if not entry.session_id:
            raise BadLine("a message has no session id")
        key = entry.uuid or f"@{line.offset}"
        copy = self._line_ids.compare(f"{entry.session_id}/{key}", line)
        if copy == "same":
            return
        chain = self._chain(entry)
        if line.offset < chain.begins_at:
            return
        if copy == "other":
            key = f"{key}#{line.offset}"
            reason = f"the id {entry.uuid} is used twice with different content; both are kept"
            self.ready.append(Skip(line=line.number, reason=reason))
        if not chain.has_messages:
            chain.session = msgspec.structs.replace(
                chain.session,
                cwd=entry.cwd or "",
                git_branch=entry.git_branch or "",
                platform=entry.entrypoint or "",
                agent=f"Claude Code {entry.version}" if entry.version else "Claude Code",
            )
        self._note_fork(chain, entry)
        if entry.type == "system":
            if entry.subtype == "compact_boundary":
                chain.finish_answer()
                chain.generation += 1
        elif entry.message is None:
            raise BadLine("a message line has no message")
        elif entry.type == "assistant":
            _add_answer_line(chain, line, entry, entry.message, key)
        else:
            _add_user_line(chain, line, entry, entry.message, key)
        if chain.is_full:
            self.ready += chain.fragments(line.offset)

    def _add_attachment(self, entry: _Entry, attachment: Attachment, line: Line) -> None:
        """Note what a hook gave the model, or how it rewrote a call."""
        opening, rewritten = opening_of(attachment), rewritten_call(attachment)
        if not (opening or rewritten):
            return
        chain = self._chain(entry)
        if line.offset < chain.begins_at:
            return
        if rewritten:
            chain.rewrite_call(*rewritten)
        elif not chain.session.opening:
            chain.session = msgspec.structs.replace(chain.session, opening=opening)

    def close(self, read_bytes: int) -> Iterator[Fragment]:
        """Yield everything that is left, including answers that are still open."""
        for chain in self._chains.values():
            chain.finish_answer()
            yield from chain.fragments(read_bytes)
        for name, title in self._titles.items():
            if self._has_messages(name):
                session = msgspec.structs.replace(self._session(name), title=title)
                yield Fragment(session=session, read_bytes=read_bytes)

    def memory(self) -> dict[str, Any]:
        """Return the state that the next read of this log needs."""
        chains = {name: chain.memory() for name, chain in self._chains.items()}
        open_answers = [chain.answer for chain in self._chains.values() if chain.answer]
        first = min(open_answers, key=lambda answer: answer.offset, default=None)
        memory = {
            "chains": {**self._saved, **chains},
            "titles": {n: t for n, t in self._titles.items() if not self._has_messages(n)},
            "copies": self._line_ids.before(first.offset if first else None),
        }
        return memory if first is None else {**memory, "back_to": [first.offset, first.line - 1]}

    def _note_fork(self, chain: Chain, entry: _Entry) -> None:
        """Note where a fork was made from, and when: some versions name the session that sent a
        copied request, and a file that is younger than its first message begins with copies.
        """
        is_copy = entry.request_session_id not in (None, entry.session_id)
        if chain.has_messages and not is_copy:
            return
        at, details = seconds(entry.timestamp) or 0.0, dict(chain.session.details)
        created = self._created.pop(str(entry.session_id), None)
        if created is not None and created > at:
            details["forked_at"] = created
        if is_copy:
            details["forked_from"] = entry.request_session_id
            # Not before the last copied line.
            details["forked_at"] = max(at, details.get("forked_at", 0.0))
        if details != chain.session.details:
            chain.session = msgspec.structs.replace(chain.session, details=details)

    def _session(self, name: str, lineage: Lineage | None = None) -> Session:
        source = ClaudeCodeReader.name
        return Session(id=SessionId(name), source=source, log=self._path, lineage=lineage)

    def _has_messages(self, name: str) -> bool:
        chain = self._chains.get(name)
        return chain.has_messages if chain else bool(self._saved.get(name, {}).get("told"))

    def _chain(self, entry: _Entry) -> Chain:
        name = str(entry.session_id)
        lineage = None
        if entry.is_sidechain:
            lineage = Lineage(parent=SessionId(name), kind="subagent")
            # The agent id comes first: people refer to it, and it is rarely used twice.
            name = f"agent-{entry.agent_id or 'side'}-{name}"
        if name not in self._chains:
            self._chains[name] = Chain(
                self._session(name, lineage),
                self._saved.pop(name, {}),
                begins_at=self._resumed_at,
                replaces=not self._resumed,
            )
        return self._chains[name]


def _add_answer_line(chain: Chain, line: Line, entry: _Entry, body: _Body, key: str) -> None:
    answer = chain.answer_for(body.id or key, key, line)
    answer.at = answer.at or seconds(entry.timestamp)
    answer.model = body.model or answer.model
    answer.finish_reason = body.stop_reason or answer.finish_reason
    if entry.is_api_error_message or body.model == "<synthetic>":
        answer.kind = "harness"
    elif body.usage is not None:
        answer.usage = Usage(
            key=answer.id,
            model=answer.model,
            at=answer.at,
            input_tokens=body.usage.input_tokens,
            output_tokens=body.usage.output_tokens,
            cache_read_tokens=body.usage.cache_read_input_tokens,
            cache_write_tokens=body.usage.cache_creation_input_tokens,
            cost_usd=entry.cost_usd,
            cost_origin="" if entry.cost_usd is None else "claude_code",
        )
    if isinstance(body.content, str):
        answer.texts.append(body.content)
        return
    for block in body.content or ():
        if block.type == "tool_use" or (block.input is not _UNSET and block.name):
            arguments = "{}" if block.input is _UNSET else text_of(block.input)
            answer.calls.append(
                ToolCall(id=block.id or "", name=block.name or "", arguments=arguments)
            )
        elif block.thinking is not None:
            answer.reasonings.append(block.thinking)
        elif block.text is not None:
            answer.texts.append(block.text)


def _result_flags(chain: Chain, entry: _Entry, block: _Block, text: str) -> ResultFlags | None:
    """Return the flags of a result, with who refused the call if that is recorded."""
    recorded = recorded_flags(entry.tool_use_result, is_error=block.is_error)
    if recorded is None or not block.is_error:
        return recorded
    if refused_by := refuser(entry.permission_decision, entry.tool_denial_kind):
        return msgspec.structs.replace(recorded, refused_by=refused_by)
    calls = chain.answer.calls if chain.answer else ()
    tool = next((call.name for call in calls if call.id == block.tool_use_id), "")
    if is_not_run(tool, text, entry.tool_use_result, entry.version or ""):
        return msgspec.structs.replace(recorded, status="not_run")
    return recorded


def _add_user_line(chain: Chain, line: Line, entry: _Entry, body: _Body, key: str) -> None:
    at = seconds(entry.timestamp)
    blocks = body.content if isinstance(body.content, list) else []
    texts = [body.content] if isinstance(body.content, str) else []
    for index, block in enumerate(blocks):
        if block.type == "tool_result":
            text = ""
            if block.content is not _UNSET:
                text = as_text(_decode_any(text_of(block.content)))
            chain.add(
                Message(
                    key=f"{key}#{index}" if index else key,
                    position=line.offset + index,
                    role="tool",
                    text=text,
                    tool_call_id=block.tool_use_id or "",
                    recorded=_result_flags(chain, entry, block, text),
                    at=at,
                    generation=chain.generation,
                )
            )
        else:
            texts.append(block.text if block.text is not None else f"[{block.type}]")
    if not texts:
        return
    kind: MessageKind = "summary" if entry.is_compact_summary else "plain"
    if kind == "plain" and (
        entry.is_meta or all(text.lstrip().startswith(HARNESS_PREFIXES) for text in texts)
    ):
        kind = "harness"
    message = Message(
        key=f"{key}#text" if len(blocks) > 1 else key,
        position=line.offset + len(blocks),
        role="user",
        text="\n".join(texts),
        kind=kind,
        at=at,
        generation=chain.generation,
    )
    if kind == "plain":
        chain.add_prompt(message, entry.uuid or "", entry.parent_uuid)
    else:
        chain.add(message)
