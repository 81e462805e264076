"""Views of the whole service, rather than of a run or a chat: its standstills and its pace."""
