"""AI Medicare Evaluation Harness: asks AI systems Medicare questions and judges the answers against a written key.

The package is `src` in a checkout and `medicare_eval` once installed. Importing it imports nothing heavy.
"""

__version__ = "0.2.0"
