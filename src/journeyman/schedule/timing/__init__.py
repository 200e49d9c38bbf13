"""When jobs run: texts that people write, time zones, and the times that follow from them."""
