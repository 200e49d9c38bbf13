"""Finds, recognises and imports the logs of other agents. Logs are streamed and never modified."""
