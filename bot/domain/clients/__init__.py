"""Clients: what the pages and apps of people ask of us, and what they are told."""
