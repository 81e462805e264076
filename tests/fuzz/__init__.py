"""Generated inputs at every door and parser: nothing unhandled, no 5xx, bounded time and memory.

A target (`engine.py`) makes an input from a seeded source of chance and says in a word what became
of it; whatever it raises is a finding. `make fuzz` runs a million of them, `test_sample.py` a
few thousand. What was found is a test of the room that it was found in.
"""
