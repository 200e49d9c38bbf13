"""What must not be learned: secrets and people's details, and text that instructs its reader."""
