"""Reading, checking and writing text, without any knowledge of the domain."""
