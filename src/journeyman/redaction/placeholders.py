"""What stands in the place of a secret: `<family:N>`, the same for the same value, and what is
remembered from one text of a pattern to the next. Finding secrets is for the other modules.
"""

import re
from collections import defaultdict

PLACEHOLDER = re.compile(r"<([a-z][a-z_]{2,24}):(\d{1,9})>")
_MOST_REMEMBERED = 100


class Placeholders:
    """Numbers values by family, in the order of their first appearance. `names` are the user names
    seen so far.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._numbers: dict[tuple[str, str], int] = {}
        self._last: defaultdict[str, int] = defaultdict(int)
        self._remembered: dict[str, str] = {}

    def put(self, family: str, value: str) -> str:
        number = self._numbers.get((family, value))
        if number is None:
            self._last[family] += 1
            number = self._numbers[family, value] = self._last[family]
        return f"<{family}:{number}>"

    def remember(self, value: str, placeholder: str) -> None:
        """From now on the value is replaced wherever it stands, not only in a telling place."""
        if len(self._remembered) < _MOST_REMEMBERED:
            self._remembered[value] = placeholder

    def without_remembered(self, text: str) -> str:
        for value, placeholder in self._remembered.items():
            if value in text:
                text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", placeholder, text)
        return text

    def keep_free(self, text: str) -> None:
        """Numbers that a text brings with it belong to other values: new ones go on behind them."""
        for family, number in PLACEHOLDER.findall(text):
            self._last[family] = max(self._last[family], int(number))

    def to_try(self) -> "Placeholders":
        """Others that know the same names and values, for a text that is only looked at."""
        others = Placeholders()
        others.names.update(self.names)
        for value, placeholder in self._remembered.items():
            others.remember(value, placeholder)
        return others
