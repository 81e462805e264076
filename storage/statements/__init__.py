"""Statements: their spelling, their binds, and the open transaction in which they run."""
