"""The HTTP library that the installed openai SDK uses: httpx2 from version 3 on, httpx before. The
SDK accepts clients of its own library only; the parts used here are the same in both.
"""

from importlib import import_module
from typing import TYPE_CHECKING

import openai

if TYPE_CHECKING:
    import httpx2 as http
else:
    http = import_module("httpx" if openai.__version__.startswith("2.") else "httpx2")

__all__ = ["http"]
