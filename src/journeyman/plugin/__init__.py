"""Journeyman inside other programs' agents: the resident process, its clients in each host, and the
gate for their calls.
"""
