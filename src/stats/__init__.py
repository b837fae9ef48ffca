"""Statistics: pure functions on numbers. No files, no models, no clock."""
