"""The HTTP server over the confirmations' service: for agents, for people, and the page."""
