"""Default values shared by the library and every surface."""

BUDGET_TOKENS = 1_500
"""The token budget of an opening."""

EXAMPLES = 3
"""The number of examples in an opening: studies found one to three best."""

MIN_SIMILARITY = 0.28
"""The similarity below which two texts have no more in common than any two: the nearest of 490
requests scored 0.14 to 0.32 for 50 unrelated questions, and 19 of 20 related ones above 0.29."""

MIN_MESSAGES = 30
MAX_SESSIONS = 30
"""Which sessions a template is built from: their minimum number of messages, and the maximum number
of sessions."""

MAX_PATTERNS = 100
MAX_EXAMPLES = 10
"""The maximum number of patterns in a template built from many sessions, and in one created from
one session."""

TRIVIAL_TOOLS = (
    # Tools that ask or answer the person.
    *("clarify", "AskUserQuestion", "request_user_input", "ask_followup_question"),
    *("attempt_completion", "finish", "submit"),
    # Tools for the agent's own memory and plan.
    *("memory", "fact_store", "fact_feedback", "session_search", "warm_session"),
    *("todo", "todo_list", "TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskGet"),
    *("TaskList", "EnterPlanMode", "ExitPlanMode", "update_plan", "think", "sequentialthinking"),
    # Tools that look up what the agent can do.
    *("skill_view", "skills_list", "skill_manage", "Skill", "SlashCommand", "ToolSearch"),
    # Tools that wait for or stop work that another call started.
    *("TaskOutput", "TaskStop", "BashOutput", "KillShell", "KillBash", "request_confirmation"),
)
"""Housekeeping tools, which change nothing outside the agent: they are never learned from and can
be left out of rates."""
