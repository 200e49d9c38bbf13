"""How much, unless somebody says otherwise. One place, for the library and every surface."""

BUDGET_TOKENS = 1_500
"""What an opening may cost."""

MOST_PATTERNS = 6
"""As many examples as help at most: studies found one to three whole runs best."""

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
