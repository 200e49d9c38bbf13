"""Selecting: which of many patterns fit a task."""
