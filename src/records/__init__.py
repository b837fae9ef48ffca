"""The records behind `schemas.py`, by what they describe. Import them from `schemas`."""
