"""Numbered migrations, applied when a store is opened. Each says why it was needed."""
