"""Statistics: pure functions on numbers. No file, no model, no clock."""
