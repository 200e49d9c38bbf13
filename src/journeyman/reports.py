"""Reports as files that people send around: a chart, a page. They are written whole or not at all;
what is in them the reliability room decides.
"""

from collections.abc import Sequence
from pathlib import Path

from journeyman.atomic_write import replace_file
from journeyman.records import JudgedSession
from journeyman.records.errors import WrongInput
from journeyman.reliability.profile import By, Profile, grouped

_ON_THE_PAGE: tuple[By, ...] = ("source", "model", "type")


def draw(profile: Profile, path: Path) -> None:
    """Draw a profile into a PNG or an SVG file, as the file's name ends. Raises WrongInput, and
    MissingPart without the extra for charts.
    """
    # Loaded here because few reports have a chart, and charts need much that is not always there.
    from journeyman.reliability import charts  # noqa: PLC0415

    if path.suffix.lower() not in charts.FORMATS:
        endings = " or ".join(charts.FORMATS)
        raise WrongInput(f"A chart cannot be written to {path}: its name must end in {endings}.")
    chart = charts.overview(profile)
    if chart is None:
        raise WrongInput(f"There is nothing to draw: {profile.note}")
    _write(path, charts.picture(chart, path.suffix.lower()), "chart")


def write_page(
    profile: Profile, judged: Sequence[JudgedSession], path: Path, *, made_at: float
) -> None:
    """Write the profile of these sessions as a page. Raises as `draw` does."""
    from journeyman.reliability.page import page  # noqa: PLC0415

    sources = sorted({session.source for session in judged})
    title = f"Reliability of {len(judged):,} session{'' if len(judged) == 1 else 's'}"
    if len(sources) == 1:
        title += f" of {sources[0]}"
    groups = [(by, grouped(judged, by)) for by in _ON_THE_PAGE]
    text = page(profile, title=title, made_at=made_at, groups=groups)
    _write(path, text.encode(), "page")


def _write(path: Path, content: bytes, what: str) -> None:
    try:
        replace_file(path, content)
    except OSError as problem:
        raise WrongInput(
            f"The {what} cannot be written to {path}: {problem.strerror}. Name another place."
        ) from problem
