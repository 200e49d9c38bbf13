"""Messages sent out of this machine: services, text limits, and mentions made harmless."""
