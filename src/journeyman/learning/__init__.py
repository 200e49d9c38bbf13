"""Learning: what sessions teach, and the version of all rules that decide this."""

import hashlib
from collections.abc import Iterable

from journeyman.gate import RULES_VERSION as GATE_RULES
from journeyman.models import VECTORS_VERSION
from journeyman.outcomes import RULES_VERSION as VERDICT_RULES
from journeyman.redaction import RULES_VERSION as REDACTION_RULES

RULES_VERSION = 13
"""Raise this with every change that may find something else in a session. What was learned under
another version is learned again.
"""


def learning_rules(trivial: Iterable[str]) -> str:
    """Return the versions of the rule sets and of the vectors, and a digest of the names of the
    trivial tools. Loads none of the rules: checking whether anything is new must be cheap.
    """
    names = hashlib.sha256(repr(sorted(trivial)).encode()).hexdigest()[:8]
    return (
        f"outcomes {VERDICT_RULES}, redaction {REDACTION_RULES}, "
        f"gate {GATE_RULES}, mining {RULES_VERSION}, "
        f"vectors {VECTORS_VERSION}, trivial {names}"
    )
