"""The tables of what operators do in a chat by hand."""
