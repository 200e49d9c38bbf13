"""Experiments: does what was learned help the sessions that follow?"""
