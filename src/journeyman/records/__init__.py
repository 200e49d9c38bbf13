"""The words of Journeyman as frozen values: sessions, messages, calls, verdicts, usage, lineage,
patterns, templates, and what an agent writes down.

No I/O here, and no room above is known.
"""

from journeyman.records.call import Call, join_calls
from journeyman.records.episode import (
    CommandUse,
    Ending,
    Episode,
    FileUse,
    MinedSession,
    Mistake,
    SearchKeys,
)
from journeyman.records.fragment import Fragment, LogEvent, LogState, Mark, SessionChange, Skip
from journeyman.records.kept_out import (
    Forgotten,
    ForgottenSession,
    KeptOut,
    KeptOutKind,
    Quarantined,
    QuarantineState,
)
from journeyman.records.knowledge import (
    EntryChange,
    FileChange,
    JournalEntry,
    Provenance,
    Review,
    ReviewId,
    Write,
    WriteId,
    WriteKind,
)
from journeyman.records.message import Message, MessageKind, Recorded, Role, ToolCall
from journeyman.records.pattern import (
    Pattern,
    PatternId,
    PatternKind,
    PatternType,
    Step,
)
from journeyman.records.session import (
    Lineage,
    LineageKind,
    ProjectTotals,
    SearchHit,
    Session,
    SessionId,
    SessionOverview,
    SourceTotals,
)
from journeyman.records.template import (
    Effect,
    Gain,
    Imported,
    Template,
    TemplateOrigin,
    TemplateStats,
)
from journeyman.records.usage import Tokens, Usage
from journeyman.records.verdict import JudgedCall, JudgedSession, Kind, Status, Verdict

__all__ = [
    "Call",
    "CommandUse",
    "Effect",
    "Ending",
    "EntryChange",
    "Episode",
    "FileChange",
    "FileUse",
    "Forgotten",
    "ForgottenSession",
    "Fragment",
    "Gain",
    "Imported",
    "JournalEntry",
    "JudgedCall",
    "JudgedSession",
    "KeptOut",
    "KeptOutKind",
    "Kind",
    "Lineage",
    "LineageKind",
    "LogEvent",
    "LogState",
    "Mark",
    "Message",
    "MessageKind",
    "MinedSession",
    "Mistake",
    "Pattern",
    "PatternId",
    "PatternKind",
    "PatternType",
    "ProjectTotals",
    "Provenance",
    "QuarantineState",
    "Quarantined",
    "Recorded",
    "Review",
    "ReviewId",
    "Role",
    "SearchHit",
    "SearchKeys",
    "Session",
    "SessionChange",
    "SessionId",
    "SessionOverview",
    "Skip",
    "SourceTotals",
    "Status",
    "Step",
    "Template",
    "TemplateOrigin",
    "TemplateStats",
    "Tokens",
    "ToolCall",
    "Usage",
    "Verdict",
    "Write",
    "WriteId",
    "WriteKind",
    "join_calls",
]
