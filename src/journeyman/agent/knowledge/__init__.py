"""Memory and skills: files that the agent writes for its later self."""
