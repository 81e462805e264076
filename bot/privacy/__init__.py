"""A person's own data: the record of a chat, its erasure, and requests for either."""
