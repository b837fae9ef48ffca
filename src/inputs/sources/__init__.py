"""Checking the addresses that an answer cites: are they real, are they official, does the page support the statement?

Everything but `fetch` works offline, from a snapshot of pages that a maintainer made (docs/sources.md).
"""
