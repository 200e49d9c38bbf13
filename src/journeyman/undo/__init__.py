"""Takes back what a session changed in its work tree."""
