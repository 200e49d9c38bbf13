"""Tools as they are now, and whether a stored call still fits them."""
