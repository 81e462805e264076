"""The chat in a terminal: lines in, work as it goes on, answers out; and the story of a kill."""
