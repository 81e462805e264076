"""Clients: the ports by which pages and apps of people ask, and the news that they get."""
