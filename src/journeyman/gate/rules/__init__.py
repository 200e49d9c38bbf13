"""The rules on commands, a table for each family."""
