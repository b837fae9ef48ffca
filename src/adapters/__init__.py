"""How to call a model: one file per provider, each behind the interface in `base`."""
