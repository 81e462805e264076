"""The whole service, rather than one run or chat: what stands still, and how it goes."""
