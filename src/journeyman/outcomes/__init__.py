"""What became of a call: the judge and its rules."""
