"""All four providers through servers that others wrote, with the README's settings and the real command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from src import storage
from tests.loopback import Loopback
from tests.runs import ONE, newest, process, replays, verifies
from tests.test_wire_runs import sensible
from tests.third_party import KEY, MODELS, SERVERS, ThirdParty, readme_settings, running

pytestmark = pytest.mark.slow

VERSIONS = {"openai": {None}, "anthropic": {"2023-06-01"}, "google": {"v1beta"}, "xai": {None}}
ENDINGS = {
    "openai": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "google": f"/v1beta/models/{MODELS['google']}:generateContent",
    "xai": "/v1/chat/completions",
}


def calls_of(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / storage.JOURNAL).read_text(encoding="utf-8").splitlines()
    return [record for line in lines if (record := json.loads(line)).get("model")]


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_all_four_providers_answer_through(server: ThirdParty, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    assert pytestconfig.cache is not None
    cache = pytestconfig.cache.mkdir(re.sub(r"\W+", "-", server.package))
    with Loopback(sensible) as upstream, running(server, cache, tmp_path, upstream.address) as port:
        settings = readme_settings(server.name, port)
        reached = process("doctor", "--reach", "--out", tmp_path, "--json", env=settings)
        assert reached.returncode == 0, reached.stdout
        found = {one["name"]: one for one in json.loads(reached.stdout) if one["area"] == "network"}
        assert {name: one["state"] for name, one in found.items()} == dict.fromkeys(MODELS, "ok")
        targets = [part for provider, model in MODELS.items() for part in ("--target", f"{provider}:{model}")]
        runs = tmp_path / "runs"
        ran = process("run", "--scenario", ONE, *targets, "--judge-model", "offline:rules", "--out", runs, env=settings)
        assert ran.returncode == 0, ran.stderr
        judged = server.name == "LiteLLM proxy"  # the only one with something behind it that can judge
        if judged:
            _judges_answer(tmp_path / "judged", settings)
    calls = calls_of(newest(runs))
    for provider in MODELS:
        own = [call for call in calls if call["model"].startswith(f"{provider}:")]
        assert {call["outcome"] for call in own} == {"ok"} and len(own) >= 2, "a probe and an answer"
        assert {call["address"].endswith(ENDINGS[provider]) for call in own} == {True}
        assert {call.get("api_version") for call in own} == VERSIONS[provider]
    assert KEY not in ran.stdout + ran.stderr + reached.stdout + reached.stderr
    assert KEY not in (newest(runs) / storage.JOURNAL).read_text(encoding="utf-8")
    verifies(newest(runs))
    replays(newest(runs))


def _judges_answer(runs: Path, settings: dict[str, str]) -> None:
    """Judges of three providers read the schema of their replies through the proxy."""
    judges = [part for name in ("anthropic", "google", "xai") for part in ("--judge-model", f"{name}:{MODELS[name]}")]
    target = f"openai:{MODELS['openai']}"
    given = ("--scenario", ONE, "--target", target, *judges, "--judges", "3", "--no-probe")
    ran = process("run", *given, "--out", runs, env=settings)
    assert ran.returncode == 0, ran.stderr
    (result,) = [json.loads(line) for line in (newest(runs) / storage.RESULTS).read_text(encoding="utf-8").splitlines()]
    assert result["outcome"] == "scored"
    assert len(result["judge_services"]) == 3
