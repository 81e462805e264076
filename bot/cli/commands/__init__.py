"""Commands: a module for each group of them, or for what one of them does."""
