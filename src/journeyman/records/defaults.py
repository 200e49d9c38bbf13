"""Default values shared by the library and every surface."""

BUDGET_TOKENS = 1_500
"""The token budget of an opening."""

MOST_PATTERNS = 6
"""The largest useful number of examples: studies found one to three whole runs best."""

SMALL_MODEL_EXAMPLES = 3
"""The number of examples for a small model."""

MAX_TEMPLATE_PATTERNS = 15
"""How many patterns are shown of a template that is loaded without a task."""

MIN_SIMILARITY = 0.3
"""The similarity below which two texts have no more in common than any two: the nearest of 1,300
patterns scored 0.13 to 0.33 for unrelated questions, and 0.33 to 0.83 for related ones."""

MIN_MESSAGES = 30
MAX_SESSIONS = 30
"""Which sessions a template is built from: their minimum number of messages, and the maximum number
of sessions."""

MAX_PATTERNS = 100
MAX_EXAMPLES = 10
"""The maximum number of patterns in a template built from many sessions, and in one created from
one session."""

TRIVIAL_TOOLS: tuple[str, ...] = (
    # Hermes: questions, memory, skills, past sessions and to-do lists
    *("clarify", "memory", "fact_store", "fact_feedback", "session_search", "skill_view"),
    *("skills_list", "skill_manage", "todo", "todo_list"),
    # Claude Code: plans, lists, questions and background tasks
    *("TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList", "TaskOutput"),
    *("TaskStop", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Skill", "SlashCommand"),
    *("ToolSearch", "BashOutput", "KillShell", "KillBash"),
    # Codex and others
    *("update_plan", "request_user_input", "think", "sequentialthinking"),
    *("ask_followup_question", "attempt_completion", "finish", "submit"),
    # Journeyman
    *("warm_session", "request_confirmation"),
)
"""Tools that are never learned from: they only manage the agent's own state."""
