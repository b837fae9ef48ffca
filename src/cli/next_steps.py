"""What to type next, after the demo, from wherever the command was started."""

from __future__ import annotations


def next_steps() -> str:
    return "\n".join(
        [
            "Next: try a real model. You need two API keys, because the judge must come from a different provider than",
            "the target:",
            "  pip install 'medicare-eval[openai,anthropic]'",
            "  export OPENAI_API_KEY=... ANTHROPIC_API_KEY=...",
            "  medicare-eval run --scenario scenarios/v1/scenario_001.json \\",
            "    --target openai:gpt-4.1 --judges 2 --seed 42",
        ]
    )
