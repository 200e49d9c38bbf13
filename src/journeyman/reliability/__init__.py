"""Reliability from verdicts: error rates with intervals, profiles, learning, comparison."""

from typing import Literal

By = Literal["tool", "model", "source", "platform", "project", "day", "length", "type"]
"""What error rates can be grouped by. It stands here because the modules that group load numpy."""
