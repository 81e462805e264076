"""WhatsApp as it is by whichever way it is reached: its window, marks, choices, templates."""
