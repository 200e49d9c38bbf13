"""HTML made of elements. Text that goes into an element is made harmless and escaped, unless it is
markup already, so that nothing a session recorded can become a part of the page. What the page
says is left to `page`.
"""

from html import escape

_WITHOUT_END = frozenset({"wbr"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def harmless(text: str) -> str:
    """Recorded text that can be shown anywhere: what has no shape of its own, such as control
    characters and those that turn the direction of writing, is replaced.
    """
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    return " " if character.isspace() else "\N{REPLACEMENT CHARACTER}"


def element(name: str, *inside: str, **attributes: str) -> Markup:
    """An element. `class_` stands for the attribute `class`, and `_` in a name for `-`."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(harmless(value))}"'
        for key, value in attributes.items()
    )
    if name in _WITHOUT_END:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{joined(*inside)}</{name}>")


def joined(*parts: str) -> Markup:
    """Parts one after the other, each of them text or markup."""
    return Markup(
        "".join(
            part if isinstance(part, Markup) else escape(harmless(part), quote=False)
            for part in parts
        )
    )
