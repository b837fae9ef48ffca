"""The Python API: what notebooks, the command line and other front ends call. Nothing here prints.

    import medicare_eval as me
    run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
    run.to_frame("claims")

Every function that calls models exists twice: `run` waits, also inside a notebook whose event loop is running, and
`run_async` is awaited. Nothing is imported here: each module loads what it uses.
"""
