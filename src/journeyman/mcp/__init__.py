"""The MCP server: what Journeyman knows, for the models of any MCP client."""
