"""What comes from outside: recorded conversations, pages of sources, and scenario files that people write."""
