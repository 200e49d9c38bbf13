"""The public facade: `Journeyman`, the rooms it wires together, and the installation check."""
