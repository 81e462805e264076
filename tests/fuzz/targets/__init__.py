"""The targets, by what they aim at."""
