"""Parts to test agents and Journeyman itself with; they ship with the product.

The sample corpus is made by scripted agents that really execute their calls, and recorded in the
formats of real recorders, so that the product's own readers import it.
"""

from journeyman.testing.corpus import Corpus, Source, write_corpus, write_lists
from journeyman.testing.scripted_model import ScriptedModel, calls, says

__all__ = [
    "Corpus",
    "ScriptedModel",
    "Source",
    "calls",
    "says",
    "write_corpus",
    "write_lists",
]
