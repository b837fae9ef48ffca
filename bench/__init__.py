"""Measures the harness on a loopback server, next to a bare SDK loop and next to Inspect AI: `python -m bench`."""
