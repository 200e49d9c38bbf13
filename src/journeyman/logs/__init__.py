"""Other agents' logs: finding them, recognising them, reading them as streams. Read-only."""
