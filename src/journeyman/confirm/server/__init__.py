"""The HTTP server for confirmations: the API for agents and approvers, and the web page."""
