"""Reliability from verdicts: error rates with intervals, profiles, learning, comparison."""

from typing import Literal

By = Literal["tool", "model", "source", "project", "length", "type"]
"""What error rates can be grouped by. It stands here because the profile's module loads numpy."""
