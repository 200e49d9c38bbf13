"""Tools for testing agents, and Journeyman itself: a scripted model and a sample corpus."""

from journeyman.testing.corpus import Corpus, Source, write_corpus, write_lists
from journeyman.testing.scripted_model import ScriptedModel, calls, says

__all__ = ["Corpus", "ScriptedModel", "Source", "calls", "says", "write_corpus", "write_lists"]
