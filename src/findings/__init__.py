"""What a run found: gathered once from its results, then counted, compared and written out. Needs no SDK and no key."""
