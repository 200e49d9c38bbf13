"""What stands in front of each call: allow, ask or refuse."""
