"""Decisions: pure functions over values, each decided once, in one table."""
