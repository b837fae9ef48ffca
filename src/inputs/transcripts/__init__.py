"""Conversations of people and of chat apps: read from files, redacted, aligned with a script, and saved."""
