"""Reports: the rows in words and pictures, for whoever asks."""
