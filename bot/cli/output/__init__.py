"""The form in which commands print: tables and cards, times, the keys of JSON."""
