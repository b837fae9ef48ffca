"""The five agents (questioner, extractor, verifier, scorer, adjudicator), one file each.

An agent knows only the records and `adapters.base`. The orchestrator hands it the function that calls a model.
"""
