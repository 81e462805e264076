"""Pages: each its views, and what it alone shows."""
