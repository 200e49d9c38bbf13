"""Writes reports as files to share: a chart or an HTML page. A file is written completely or not at
all.
"""

from collections.abc import Sequence
from pathlib import Path

from journeyman.records import JudgedSession
from journeyman.records.errors import WrongInput
from journeyman.reliability import By
from journeyman.reliability.groups import Group, grouped
from journeyman.reliability.profile import Profile
from journeyman.text.atomic_write import replace_file

_PAGE_GROUPS: tuple[By, ...] = ("source", "platform", "model")


def write_chart(
    profile: Profile, path: Path, *, by: By | None = None, groups: Sequence[Group] = ()
) -> None:
    """Draw a profile into a PNG or SVG file, depending on the suffix; with `by`, the rates of the
    groups instead of those by tool. Raises WrongInput, and MissingPart without the extra for
    charts.
    """
    # Imported here because few reports have a chart, and charts need an extra.
    from journeyman.reliability import charts  # noqa: PLC0415

    if path.suffix.lower() not in charts.FORMATS:
        suffixes = " or ".join(charts.FORMATS)
        raise WrongInput(f"A chart cannot be written to {path}: its name must end in {suffixes}.")
    chart = charts.overview_chart(profile, by, groups)
    if chart is None:
        raise WrongInput(f"There is nothing to draw: {profile.note}")
    _write(path, charts.render(chart, path.suffix.lower()), "chart")


def write_html_report(
    profile: Profile,
    judged: Sequence[JudgedSession],
    path: Path,
    *,
    made_at: float,
    by: By | None = None,
    groups: Sequence[Group] = (),
) -> None:
    """Write the profile of these sessions as an HTML page; with `by`, its groups come first. Raises
    the same errors as a chart.
    """
    from journeyman.reliability.html_report import render_page  # noqa: PLC0415

    sources = sorted({session.source for session in judged})
    title = f"Reliability of {len(judged):,} session{'' if len(judged) == 1 else 's'}"
    if len(sources) == 1:
        title += f" of {sources[0]}"
    others = [(other, grouped(judged, other)) for other in _PAGE_GROUPS if other != by]
    others = [(other, shown) for other, shown in others if _says_anything(other, shown)]
    first = (by, tuple(groups)) if by else None
    text = render_page(profile, title=title, made_at=made_at, first=first, groups=others)
    _write(path, text.encode(), "page")


def _says_anything(by: By, groups: Sequence[Group]) -> bool:
    return any(group.name != f"unknown {by}" for group in groups)


def _write(path: Path, content: bytes, what: str) -> None:
    try:
        replace_file(path, content)
    except OSError as error:
        raise WrongInput(
            f"The {what} cannot be written to {path}: {error.strerror}. Choose another path."
        ) from error
