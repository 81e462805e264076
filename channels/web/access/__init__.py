"""Access to the routes of the web: doors, limits, origins, sessions and tokens."""
