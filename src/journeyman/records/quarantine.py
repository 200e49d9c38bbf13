"""The quarantine as a person sees it: everything that was kept out, each once, with where it was
found and what was decided about it.
"""

from typing import Literal

from msgspec import Struct

from journeyman.records.kept_out import KeptOutKind
from journeyman.records.session import SessionId

QuarantineState = Literal["kept out", "released", "deleted"]
"""`kept out`: nobody has decided. `released`: it may be learned. `deleted`: it stays kept out and
is not listed any more."""


class Quarantined(Struct, frozen=True, kw_only=True):
    """What a rule kept out. It was found in `sessions`, or stands in `templates`, each named with
    its version, that came from a file.
    """

    key: str
    kind: KeptOutKind
    rule: str
    reason: str
    text: str
    sessions: tuple[SessionId, ...] = ()
    templates: tuple[str, ...] = ()
    state: QuarantineState = "kept out"
    decided_at: float | None = None
    decided_by: str = ""
