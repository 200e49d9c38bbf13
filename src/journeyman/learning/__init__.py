"""Mining: which calls of a session are worth repeating and what they were for, and the version of
all rules that decide this.
"""

import hashlib
from collections.abc import Iterable

from journeyman.gate import RULES_VERSION as GATE_RULES
from journeyman.models import VECTORS_VERSION
from journeyman.outcomes import RULES_VERSION as VERDICT_RULES
from journeyman.redaction import RULES_VERSION as REDACTION_RULES
from journeyman.reliability.task_types import TYPES_VERSION

RULES_VERSION = 8
"""Raise this with every change that may find other patterns in a session, or the same ones with
other content. What was learned under another version is learned again.
"""


def learning_rules(trivial: Iterable[str]) -> str:
    """Return the versions of the rule sets, of the vectors, and a digest of the
    names of the trivial tools. Loads none of the rules: checking whether anything is new must be
    cheap.
    """
    names = hashlib.sha256(repr(sorted(trivial)).encode()).hexdigest()[:8]
    return (
        f"outcomes {VERDICT_RULES}, redaction {REDACTION_RULES}, "
        f"gate {GATE_RULES}, types {TYPES_VERSION}, mining {RULES_VERSION}, "
        f"vectors {VECTORS_VERSION}, trivial {names}"
    )
