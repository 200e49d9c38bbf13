"""The proxy: a server on loopback between an agent and its model API. It adds the opening to every
request of a session, passes everything else through as it is, and records the sessions of agents
that keep no logs.
"""
