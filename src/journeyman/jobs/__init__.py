"""Jobs: prompts that an agent runs on a schedule."""
