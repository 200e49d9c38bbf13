"""What verdicts say about reliability: rates with intervals, profiles, learning, comparison."""
