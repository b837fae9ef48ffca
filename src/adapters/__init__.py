"""Ways to reach a model: one file a provider, each behind the seam in `base`."""
