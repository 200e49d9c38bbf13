"""Templates: mines and stores patterns, and builds openings from the few that fit a task."""
