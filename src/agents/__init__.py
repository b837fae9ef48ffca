"""The five agents: questioner, extractor, verifier, scorer, adjudicator. One file a stage, named by its verb.

An agent knows the records and `adapters.base`. How its call reaches a model is handed to it by the orchestrator.
"""
