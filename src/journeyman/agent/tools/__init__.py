"""The agent's tools, and the confinement that their commands run in."""
