"""What a row of the quarantine is. The rows stand in `quarantine_orders`, `quarantine_readers`,
`quarantine_languages`, `quarantine_roles` and `quarantine_leaks`.
"""

from typing import NamedTuple


class Row(NamedTuple):
    """Words that make a text suspicious. One of the `gates` stands in every text that fits, and one
    of the words in `also` if there are any. Patterns are for sentences as `reading` makes them;
    `raw` ones for the text as it is shown. Where people may say it themselves to their agent,
    `requests` is false.
    """

    id: str
    gates: tuple[str, ...]
    pattern: str
    example: str
    reason: str
    raw: bool = False
    also: tuple[str, ...] = ()
    requests: bool = True
