"""The tools of agents in one table, what their arguments mean, and the form of their results."""
