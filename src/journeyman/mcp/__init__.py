"""The MCP server: Journeyman's experience for the models of any MCP client."""
