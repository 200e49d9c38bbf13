"""Templates: mine patterns from sessions, keep them, choose the few that fit, open with them."""
