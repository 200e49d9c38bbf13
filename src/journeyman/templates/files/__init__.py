"""Templates as files: ours, and those of older programs."""
