"""Carrying out a run in several processes or on several machines; the results are those of one process."""
