"""Claude Code transcripts: one JSON object a line, a conversation as a tree of parent links.

What the format does that a plain reading gets wrong:

- One answer of the model is spread over several lines with one `message.id`, and the results of
  its first calls may stand between them. The lines are put together again; its usage counts once.
- The user can go back and ask something else. Then two prompts have the same parent, and what
  stands between them was taken back.
- Subagents (`isSidechain`) write into the same file or into files of their own. Each becomes a
  session of its own that descends from the main one.
- A compaction starts a new generation of the same session.

Progress lines, file snapshots and hook reports are no conversation and are left out; so are
`agent_progress` lines, which repeat what a subagent's own transcript holds.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from journeyman.logs.claude_chain import Answer, Chain, is_harness
from journeyman.logs.lines import BadLine, Line, LineDecoder, Lines
from journeyman.logs.logfile import LogFile
from journeyman.logs.values import as_text, seconds
from journeyman.records import (
    Fragment,
    Lineage,
    LogEvent,
    LogState,
    Mark,
    Message,
    Recorded,
    Session,
    SessionId,
    Skip,
    ToolCall,
    Usage,
)

_NOTHING = Raw()
_REMEMBERED_LINES = 20_000
_IDLE_LINES = 2_000


class _Block(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = _NOTHING
    tool_use_id: str | None = None
    content: Raw = _NOTHING
    is_error: bool | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Body(Struct):
    id: str | None = None
    model: str | None = None
    content: str | list[_Block] | None = None
    usage: _Usage | None = None
    stop_reason: str | None = None


class _Entry(Struct, rename="camel"):
    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    timestamp: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    custom_title: str | None = None
    cost_usd: float | None = msgspec.field(name="costUSD", default=None)
    message: _Body | None = None
    tool_use_result: Raw = _NOTHING


class _Flags(Struct, rename="camel"):
    """The small flags in `toolUseResult`; the rest of it repeats the result."""

    interrupted: bool | None = None
    success: bool | None = None
    status: str | None = None
    code: int | None = None
    exit_code: int | None = None
    truncated: bool | None = None
    user_modified: bool | None = None
    background_task_id: str | None = None
    return_code_interpretation: str | None = None
    duration_ms: float | None = None
    total_duration_ms: float | None = None


_decode_flags = msgspec.json.Decoder(_Flags, strict=False).decode
_decode_any = msgspec.json.Decoder().decode


class ClaudeCodeReader:
    """Claude Code's transcripts under `~/.claude/projects`."""

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
        lines = Lines(log, since)
        decoder: LineDecoder[_Entry] = LineDecoder(_Entry)
        transcript: _Transcript | None = None
        for line in lines:
            if transcript is None:
                memory = since.memory if since and lines.resumed else {}
                transcript = _Transcript(str(log.path), memory)
            if isinstance(line, Skip):
                yield line
                continue
            try:
                yield from transcript.take(line, decoder.decode(line))
            except BadLine as reason:
                yield Skip(line=line.number, reason=str(reason))
        if transcript is None:
            yield Mark(state=lines.state(self.name, memory=since.memory if since else None))
            return
        offset, count = transcript.resume_at() or (lines.offset, lines.count)
        yield from transcript.close(lines.offset)
        memory = transcript.memory()
        yield Mark(state=lines.state(self.name, offset=offset, lines=count, memory=memory))


class _Transcript:
    """A file being read: the conversations in it, main ones and subagents'."""

    def __init__(self, path: str, memory: dict[str, Any]) -> None:
        self._path = path
        self._chains: dict[str, Chain] = {}
        self._remembered: dict[str, dict[str, Any]] = dict(memory.get("chains", {}))
        self._side_roots: dict[str, str] = dict(memory.get("side_roots", {}))
        self._seen: dict[int, int] = {}
        self._line = 0

    def take(self, line: Line, entry: _Entry) -> Iterator[LogEvent]:
        """Take one line in; hand on what is complete."""
        self._line = line.number
        if entry.custom_title and entry.session_id in self._chains:
            self._chains[entry.session_id].title = entry.custom_title
        if entry.type not in ("user", "assistant", "system") or not entry.session_id:
            return
        key = entry.uuid or f"@{line.offset}"
        if entry.uuid:
            copy_of = self._seen_before(entry.session_id, entry.uuid, line)
            if copy_of == "same":
                return
            if copy_of == "other":
                key = f"{entry.uuid}#{line.offset}"
                reason = f"the id {entry.uuid} is used twice with other content; both are kept"
                yield Skip(line=line.number, reason=reason)
        chain = self._chain(entry)
        chain.touched_line = line.number
        if entry.type == "system":
            if entry.subtype == "compact_boundary":
                chain.compact(line.offset)
        elif entry.message is None:
            raise BadLine("a message line without a message")
        elif entry.type == "assistant":
            _take_answer(chain, line, entry, entry.message)
        else:
            _take_user(chain, line, entry, entry.message, key)
        if chain.is_full:
            yield chain.fragment(line.offset)
        if line.number % _IDLE_LINES == 0:
            yield from self._retire(line)

    def resume_at(self) -> tuple[int, int] | None:
        """Where to read on later: before the first answer that may still grow."""
        unfinished = [chain.answer for chain in self._chains.values() if chain.answer]
        if not unfinished:
            return None
        first = min(unfinished, key=lambda answer: answer.offset)
        return first.offset, first.line - 1

    def close(self, read_bytes: int) -> Iterator[Fragment]:
        for chain in self._chains.values():
            chain.finish_answer()
            if chain.has_news:
                yield chain.fragment(read_bytes)

    def memory(self) -> dict[str, Any]:
        """What a later reading of the rest has to know."""
        for name, chain in self._chains.items():
            if memory := chain.memory():
                self._remembered[name] = memory
        roots = dict(list(self._side_roots.items())[-100:])
        return {"chains": self._remembered, "side_roots": roots}

    def _seen_before(self, session: str, uuid: str, line: Line) -> str:
        name, content = hash((session, uuid)), hash(line.data)
        before = self._seen.get(name)
        if before is None:
            self._seen[name] = content
            if len(self._seen) > _REMEMBERED_LINES:
                del self._seen[next(iter(self._seen))]
            return ""
        return "same" if before == content else "other"

    def _chain(self, entry: _Entry) -> Chain:
        name = str(entry.session_id)
        lineage = None
        if entry.is_sidechain:
            lineage = Lineage(parent=SessionId(name), kind="delegate")
            name = f"{name}/agent-{entry.agent_id or self._side_root(entry)}"
        chain = self._chains.get(name)
        if chain is None:
            session = Session(
                id=SessionId(name),
                source=ClaudeCodeReader.name,
                log=self._path,
                cwd=entry.cwd or "",
                git_branch=entry.git_branch or "",
                agent=f"Claude Code {entry.version}" if entry.version else "Claude Code",
                lineage=lineage,
            )
            chain = self._chains[name] = Chain(session, self._remembered.pop(name, {}))
        return chain

    def _side_root(self, entry: _Entry) -> str:
        """Older transcripts name no agent: a side chain is known by the line it began with."""
        uuid = entry.uuid or ""
        root = self._side_roots.get(entry.parent_uuid or "", uuid)
        self._side_roots[uuid] = root
        if len(self._side_roots) > _REMEMBERED_LINES:
            del self._side_roots[next(iter(self._side_roots))]
        return root[:8]

    def _retire(self, line: Line) -> Iterator[Fragment]:
        """Let go of conversations that have not gone on for long, so that memory stays flat."""
        for name, chain in list(self._chains.items()):
            if line.number - chain.touched_line > _IDLE_LINES:
                chain.finish_answer()
                yield chain.fragment(line.offset)
                if chain.generation:
                    self._remembered[name] = chain.memory()
                del self._chains[name]


def _take_answer(chain: Chain, line: Line, entry: _Entry, body: _Body) -> None:
    answer = chain.answer_for(body.id or entry.uuid or f"@{line.offset}", line)
    answer.at = answer.at or seconds(entry.timestamp)
    answer.model = body.model or answer.model
    answer.finish_reason = body.stop_reason or answer.finish_reason
    if entry.is_api_error_message or body.model == "<synthetic>":
        answer.kind = "harness"
    elif body.usage is not None:
        answer.usage = _usage(answer, body.usage, entry.cost_usd)
    if isinstance(body.content, str):
        answer.texts.append(body.content)
        return
    for block in body.content or ():
        if block.type == "tool_use" or (block.input is not _NOTHING and block.name):
            arguments = "{}" if block.input is _NOTHING else bytes(block.input).decode()
            answer.calls.append(
                ToolCall(id=block.id or "", name=block.name or "", arguments=arguments)
            )
        elif block.thinking is not None:
            answer.reasonings.append(block.thinking)
        elif block.text is not None:
            answer.texts.append(block.text)


def _usage(answer: Answer, usage: _Usage, cost_usd: float | None) -> Usage:
    return Usage(
        key=answer.key,
        model=answer.model,
        at=answer.at,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_input_tokens,
        cache_write_tokens=usage.cache_creation_input_tokens,
        cost_usd=cost_usd,
        cost_origin="claude_code" if cost_usd is not None else "",
    )


def _take_user(chain: Chain, line: Line, entry: _Entry, body: _Body, key: str) -> None:
    at = seconds(entry.timestamp)
    texts = []
    for index, block in enumerate(body.content if isinstance(body.content, list) else ()):
        if block.type == "tool_result":
            chain.add(
                Message(
                    key=f"{key}#{index}" if index else key,
                    position=line.offset + index,
                    role="tool",
                    text=_result_text(block.content),
                    tool_call_id=block.tool_use_id or "",
                    recorded=_recorded(block, entry),
                    at=at,
                    generation=chain.generation,
                )
            )
        else:
            texts.append(block.text if block.text is not None else f"[{block.type}]")
    if isinstance(body.content, str):
        texts.append(body.content)
    if not texts:
        return
    text = "\n".join(texts)
    message = Message(
        key=f"{key}#text" if isinstance(body.content, list) and len(body.content) > 1 else key,
        position=line.offset + (len(body.content) if isinstance(body.content, list) else 0),
        role="user",
        text=text,
        kind="summary" if entry.is_compact_summary else "plain",
        at=at,
        generation=chain.generation,
    )
    if message.kind == "plain" and (entry.is_meta or is_harness(text)):
        message = msgspec.structs.replace(message, kind="harness")
    if message.kind == "plain":
        chain.prompt(message, entry.uuid or "", entry.parent_uuid)
    else:
        chain.add(message)


def _result_text(content: Raw) -> str:
    return "" if content is _NOTHING else as_text(_decode_any(content))


def _recorded(block: _Block, entry: _Entry) -> Recorded | None:
    flags = _Flags()
    if memoryview(entry.tool_use_result)[:1] == b"{":
        try:
            flags = _decode_flags(entry.tool_use_result)
        except msgspec.ValidationError:
            flags = _Flags()  # another tool's result with a field of the same name
    is_error = block.is_error
    if is_error is None and flags.success is False:
        is_error = True
    details: dict[str, str | int | float | bool] = {}
    for name in ("truncated", "user_modified", "background_task_id", "return_code_interpretation"):
        if value := getattr(flags, name):
            details[name] = value
    duration = flags.duration_ms if flags.duration_ms is not None else flags.total_duration_ms
    if duration is not None:
        details["duration_s"] = duration / 1000
    recorded = Recorded(
        is_error=is_error,
        exit_code=flags.exit_code if flags.exit_code is not None else flags.code,
        status=flags.status,
        interrupted=flags.interrupted or None,
        details=details,
    )
    return None if recorded == Recorded() else recorded
