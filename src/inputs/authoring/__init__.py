"""For people who write scenarios: check a file, list what the bank contains, start a new file."""
