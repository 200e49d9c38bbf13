"""An agent that runs warm, saves every step and reviews itself."""
