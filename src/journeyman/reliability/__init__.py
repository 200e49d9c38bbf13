"""Reliability from verdicts: error rates with intervals, profiles, learning, comparison."""
