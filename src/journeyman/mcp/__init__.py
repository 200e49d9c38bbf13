"""The MCP server: what Journeyman knows, for the models of any MCP client. `tools` says what there
is, `server` speaks the protocol; what the tools do is the facade's business.
"""
