"""What every room needs of text."""
