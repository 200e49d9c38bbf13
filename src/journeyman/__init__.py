"""Journeyman gives tool-using agents experience.

`from journeyman import Journeyman` is the one public entry point; it is loaded on first use, so
that importing the package costs nothing.
"""

from typing import TYPE_CHECKING, Any

from journeyman.version import __version__

if TYPE_CHECKING:
    from journeyman.facade.journeyman import Journeyman

__all__ = ["Journeyman", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Journeyman":
        from journeyman.facade.journeyman import Journeyman  # noqa: PLC0415 - loaded on first use

        return Journeyman
    raise AttributeError(f"module 'journeyman' has no attribute {name!r}")
