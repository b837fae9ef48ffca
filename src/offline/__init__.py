"""The offline judge: deterministic rules that read JSON-shaped records as a model would, without a model."""
