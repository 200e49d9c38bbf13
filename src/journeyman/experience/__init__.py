"""What a new session is told: facts, examples, templates."""
