"""Pages: each a list of views, with what it alone draws."""
