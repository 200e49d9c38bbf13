"""Journeyman inside other programs' agents: the resident process, its clients in each host, the
gate for their calls, and the proxy.
"""
