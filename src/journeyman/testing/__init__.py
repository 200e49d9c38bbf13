"""Tools for testing agents, and Journeyman itself: a scripted model, the same behind HTTP for other
programs' agents, and a sample corpus.
"""

from journeyman.testing.corpus import Corpus, Source, write_corpus, write_lists
from journeyman.testing.model_server import ScriptedServer
from journeyman.testing.scripted_model import ScriptedModel, calls, says

__all__ = [
    "Corpus",
    "ScriptedModel",
    "ScriptedServer",
    "Source",
    "calls",
    "says",
    "write_corpus",
    "write_lists",
]
