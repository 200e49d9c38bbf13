"""Reviews of finished turns, which write memory and skills."""
