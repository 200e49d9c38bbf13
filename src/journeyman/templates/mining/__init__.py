"""Mining: which calls of a session are worth repeating, and what they were for."""
