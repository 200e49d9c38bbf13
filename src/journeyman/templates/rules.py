"""The version of all rules that decide what is learned. What was learned under another version may
not be what would be learned today, and is learned again.
"""

import hashlib
from collections.abc import Iterable
from importlib.metadata import version

from journeyman import embeddings, gate, outcomes, redaction
from journeyman.reliability.task_types import TYPES_VERSION
from journeyman.templates import mining


def learning_rules(trivial: Iterable[str]) -> str:
    """The versions of the rule sets, of the vectors and their package, and a digest of the names of
    the tools that count as trivial. None of the rules is loaded: asking whether anything is new
    must cost nothing.
    """
    names = hashlib.sha256(repr(sorted(trivial)).encode()).hexdigest()[:8]
    return (
        f"outcomes {outcomes.RULES_VERSION}, redaction {redaction.RULES_VERSION}, "
        f"gate {gate.RULES_VERSION}, types {TYPES_VERSION}, mining {mining.RULES_VERSION}, "
        f"vectors {embeddings.VECTORS_VERSION} of {version('wordllama')}, trivial {names}"
    )
