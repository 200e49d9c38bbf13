"""Parts to test agents and Journeyman itself with; they ship with the product."""

from journeyman.testing.corpus import Corpus, Source, write_corpus, write_lists
from journeyman.testing.scripted_model import ScriptedModel, calls, says

__all__ = ["Corpus", "ScriptedModel", "Source", "calls", "says", "write_corpus", "write_lists"]
