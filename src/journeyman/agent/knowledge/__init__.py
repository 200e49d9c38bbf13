"""Memory and skills: files that the agent writes for later sessions."""
