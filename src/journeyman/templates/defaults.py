"""What holds unless somebody says otherwise, in one place for the library and every surface."""

BUDGET_TOKENS = 1_500
"""What an opening may cost."""

MOST_PATTERNS = 6
"""As many examples as help at most: studies found one to three whole runs best."""

SMALL_MODEL_EXAMPLES = 3
"""As many examples as a small model gets."""

MOST_OF_TEMPLATE = 15
"""As many patterns of a template are shown that is loaded without a task."""

FLOOR = 0.3
"""Below this similarity two texts have no more in common than any two: the nearest of 1,300
patterns was at 0.13 to 0.33 for questions that had nothing to do with them, and at 0.33 to 0.83
for those that had."""

MIN_MESSAGES = 30
MAX_SESSIONS = 30
"""How long the sessions are that a template is built from, and how many."""

MAX_PATTERNS = 100
MAX_EXAMPLES = 10
"""How many patterns a template has that is built from many sessions, or created from one."""

TRIVIAL_TOOLS: tuple[str, ...] = (
    # Hermes: asking, memory, looking at skills and past sessions, lists of things to do
    *("clarify", "memory", "fact_store", "fact_feedback", "session_search", "skill_view"),
    *("skills_list", "skill_manage", "todo", "todo_list"),
    # Claude Code: plans, lists, questions, looking after background work
    *("TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList", "TaskOutput"),
    *("TaskStop", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Skill", "SlashCommand"),
    *("ToolSearch", "BashOutput", "KillShell", "KillBash"),
    # Codex and others
    *("update_plan", "request_user_input", "think", "sequentialthinking"),
    *("ask_followup_question", "attempt_completion", "finish", "submit"),
    # Journeyman's own
    *("warm_session", "request_confirmation"),
)
"""Tools whose calls teach nothing: they keep the agent's own house."""
