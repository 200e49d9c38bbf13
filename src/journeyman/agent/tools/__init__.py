"""The tools of the agent."""
