"""A person's own data: a copy of a chat, its erasure, and what people ask of either."""
