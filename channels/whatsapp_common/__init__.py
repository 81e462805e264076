"""What is WhatsApp's own, whoever brings its messages."""
