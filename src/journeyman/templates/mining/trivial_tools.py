"""Tools whose calls teach nothing: they keep the agent's own house. Which these are is a setting;
this is its default.
"""

import re

TRIVIAL_TOOLS: tuple[str, ...] = (
    # Hermes: asking, memory, looking at skills and past sessions, lists of things to do
    "clarify",
    "memory",
    "fact_store",
    "fact_feedback",
    "session_search",
    "skill_view",
    "skills_list",
    "skill_manage",
    "todo",
    "todo_list",
    # Claude Code: plans, lists, questions, looking after background work
    "TodoWrite",
    "TodoRead",
    "TaskCreate",
    "TaskUpdate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "Skill",
    "SlashCommand",
    "ToolSearch",
    "BashOutput",
    "KillShell",
    "KillBash",
    # Codex and others
    "update_plan",
    "request_user_input",
    "think",
    "sequentialthinking",
    "ask_followup_question",
    "attempt_completion",
    "finish",
    "submit",
    # Journeyman's own
    "warm_session",
    "request_confirmation",
)

_OWN_SERVER = re.compile(r"(?:mcp_{1,2})?journeyman[_.:/]+\w+", re.IGNORECASE)


def is_trivial(tool: str, trivial: frozenset[str]) -> bool:
    """Whether calls of a tool teach nothing: it is listed, or it asks Journeyman itself."""
    return tool in trivial or _OWN_SERVER.fullmatch(tool) is not None
