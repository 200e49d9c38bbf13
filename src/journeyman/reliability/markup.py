"""HTML built from parts: text that is escaped, and markup that already is HTML."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from journeyman.text.display import printable


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def markup(form: str, *parts: str) -> Markup:
    """Fill the placeholders of an HTML form. Parts that are not markup are cleaned and escaped, so
    that recorded text can never become part of the page's HTML.
    """
    return Markup(form.format(*map(escaped, parts)))


def join_markup(parts: Iterable[str], between: str = "") -> Markup:
    """Join parts, each of them text or markup."""
    return Markup(between.join(map(escaped, parts)))


def escaped(part: str) -> str:
    """Return text as HTML; markup stays as it is."""
    return part if isinstance(part, Markup) else escape(printable(part))


def section(heading: str, *parts: Markup) -> Markup:
    """Return a section with its heading."""
    return markup("<section><h2>{}</h2>{}</section>", heading, join_markup(parts))


def quiet(text: str) -> Markup:
    """Return a paragraph of lesser weight."""
    return markup('<p class="quiet">{}</p>', text)


def table(columns: Mapping[str, str], rows: Iterable[Sequence[str]]) -> Markup:
    """Return a table; the first cell of each row is its heading."""
    heading, first, cell = (
        *('<th scope="col" class="{}">{}</th>', '<th scope="row" class="{}">{}</th>'),
        '<td class="{}">{}</td>',
    )
    head = join_markup(markup(heading, css_class, name) for name, css_class in columns.items())
    body = join_markup(
        markup(
            "<tr>{}</tr>",
            join_markup(map(markup, (first, *[cell] * len(row)), columns.values(), row)),
        )
        for row in rows
    )
    form = "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
    return markup('<div class="scroll">{}</div>', markup(form, head, body))
