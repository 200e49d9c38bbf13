"""Redaction of the texts of one pattern, before anything is stored: the one name that other rooms
use. How a text is gone through is for `walk`.
"""

from journeyman.redaction.placeholders import Placeholders
from journeyman.redaction.walk import redacted


class Redactor:
    """Redacts the texts of one pattern; placeholders are stable within it: the same e-mail address
    is <email:1> wherever it stands.

    Names and secrets that one text gives away are replaced in the following ones where they stand
    bare. Redacting changes nothing in what is redacted, so a second round over all texts with the
    same Redactor finds them in the earlier ones too.
    """

    def __init__(self) -> None:
        self._placeholders = Placeholders()

    def text(self, text: str) -> str:
        """Any text; one that is JSON is walked as JSON."""
        return redacted(text, self._placeholders)

    def arguments(self, arguments: str) -> str:
        """The arguments of a call: JSON stays valid JSON, anything else is text."""
        return redacted(arguments, self._placeholders)
