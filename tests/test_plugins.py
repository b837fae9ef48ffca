"""Plugins: found by entry points, built-ins first, duplicates refused, failures said in one sentence."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from src import plugins
from src.adapters import registry
from src.errors import ConfigError, InputError
from src.exports import export as exporting
from src.planning.scenario_files import read_scenarios
from src.records.model_name import PROVIDER_ALIASES
from tests.runs import ONE, call, make_run, shared_run

ADAPTER = """
from src.errors import ConfigError, InputError

class Adapter:
    async def complete(self, request, *, timeout_s): ...
    async def aclose(self): ...
    def check(self, model):
        if model != "small":
            raise InputError(f"acme:{model}: there is only acme:small.")

def needs_key():
    raise ConfigError("acme: no key. Set ACME_API_KEY.")

def fails():
    raise RuntimeError("no\\n  such library")

def not_an_adapter():
    return 5

number = 7
"""


@dataclass(frozen=True)
class Site:
    """A folder on sys.path that packages are installed into."""

    folder: Path

    def install(self, package: str, *entry_points: str, version: str = "1.0", module: str = ADAPTER) -> None:
        """Each entry point as `kind NAME = VALUE`; the package has one module, `PACKAGE_code`."""
        name = package.replace("-", "_")
        (self.folder / f"{name}_code.py").write_text(module, encoding="utf-8")
        info = self.folder / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        lines = []
        for point in entry_points:
            kind, _, line = point.partition(" ")
            lines += [f"[{plugins.GROUPS[kind]}]", line]  # type: ignore[index]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    yield Site(folder)
    for name in [name for name in sys.modules if name.endswith("_code")]:
        del sys.modules[name]


# Found, and used only by name


def test_an_adapter_is_found_by_its_name_and_imported_only_when_it_is_used(site: Site) -> None:
    site.install("acme-models", "adapter acme = acme_models_code:Adapter", version="2.3")
    (plugin,) = plugins.installed("adapter").values()
    assert (plugin.kind, plugin.name, plugin.package, plugin.version) == ("adapter", "acme", "acme-models", "2.3")
    assert registry.canonical_name("acme:small") == "acme:small"
    assert "acme_models_code" not in sys.modules
    assert type(registry.make_adapter("acme")).__module__ == "acme_models_code"


def test_a_model_that_a_plugin_refuses_is_refused_before_the_run(site: Site) -> None:
    site.install("acme-models", "adapter acme = acme_models_code:Adapter")
    registry.check_usable("acme:small")
    with pytest.raises(InputError, match="there is only acme:small"):
        registry.check_usable("acme:large")


def test_an_unknown_provider_is_refused_with_the_plugins_among_those_known(site: Site) -> None:
    site.install("acme-models", "adapter acme = acme_models_code:Adapter")
    with pytest.raises(InputError, match=r"no provider 'acne'\. Use one of fake, .*, grok, acme\."):
        registry.canonical_name("acne:small")


def test_the_names_reserved_for_built_ins_are_those_of_the_tables() -> None:
    assert plugins.BUILT_IN["adapter"] == {*registry.PROVIDERS, *PROVIDER_ALIASES}
    assert plugins.BUILT_IN["exporter"] == set(exporting.FORMATS)


@pytest.mark.parametrize("name", ["fake", "grok"])
def test_a_built_in_wins_over_a_plugin_of_its_name(site: Site, name: str) -> None:
    site.install("acme-models", f"adapter {name} = acme_models_code:missing")
    assert plugins.installed("adapter") == {}
    assert plugins.used_by([name], []) == {}
    registry.canonical_name(f"{name}:careful")
    assert type(registry.make_adapter("fake")).__name__ == "FakeAdapter"
    (listed,) = plugins.listing()
    assert (listed.state, listed.note) == ("shadowed", "shadowed by a built-in")


def test_two_plugins_of_one_name_are_an_error_that_names_both_packages(site: Site) -> None:
    site.install("acme-one", "adapter acme = acme_one_code:Adapter", "exporter acme = acme_one_code:Adapter")
    site.install("acme-two", "adapter acme = acme_two_code:Adapter", version="2.0")
    with pytest.raises(ConfigError) as caught:
        registry.canonical_name("acme:small")
    assert str(caught.value) == (
        "More than one adapter plugin is named 'acme': acme-one 1.0 (acme_one_code:Adapter) and "
        "acme-two 2.0 (acme_two_code:Adapter). Uninstall all but one."
    )
    assert set(plugins.installed("exporter")) == {"acme"}, "an exporter may have the name of an adapter"
    assert registry.canonical_name("fake:careful") == "fake:careful", "built-ins can still be used"


def test_one_package_that_declares_a_name_twice_is_an_error_too(site: Site) -> None:
    site.install("acme-one", "adapter acme = acme_one_code:Adapter", "adapter acme = acme_one_code:fails")
    with pytest.raises(ConfigError, match="More than one adapter plugin is named 'acme'"):
        plugins.installed("adapter")


# Failures


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("no_such_module:make", r"could not be loaded \(ModuleNotFoundError: No module named 'no_such_module'\)"),
        ("acme_models_code:missing", r"could not be loaded \(AttributeError: .*'missing'\)"),
        ("acme_models_code:fails", r"failed to start \(RuntimeError: no such library\)"),
        ("acme_models_code:number", "cannot be called: acme_models_code:number is of type int"),
        ("acme_models_code:not_an_adapter", r"made an object of type int, which has no complete\(\) and aclose\(\)"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_said_in_one_sentence(site: Site, value: str, problem: str) -> None:
    site.install("acme-models", f"adapter acme = {value}", version="2.3")
    with pytest.raises(ConfigError, match=f"^The adapter 'acme' of package acme-models 2.3 {problem}") as caught:
        registry.check_usable("acme:small")
    assert "\n" not in str(caught.value)


def test_an_error_of_this_project_passes_through_a_plugin_unchanged(site: Site) -> None:
    site.install("acme-models", "adapter acme = acme_models_code:needs_key")
    with pytest.raises(ConfigError, match=r"^acme: no key\. Set ACME_API_KEY\.$"):
        registry.check_usable("acme:small")


# Scenario packs


PACK = "from pathlib import Path\nFOLDER = Path(__file__).parent / 'bank'\nTEXT = str(FOLDER)\ndef folder(): return FOLDER\n"


@pytest.mark.parametrize("value", ["FOLDER", "TEXT", "folder"])
def test_a_pack_is_a_path_or_a_function_that_returns_one(site: Site, value: str) -> None:
    site.install("acme-bank", f"pack acme = acme_bank_code:{value}", module=PACK)
    (site.folder / "bank" / "deep").mkdir(parents=True)
    (site.folder / "bank" / "deep" / "one.json").write_bytes(Path(ONE).read_bytes())
    (file,) = read_scenarios(["pack:acme"])
    assert file.name == "pack:acme/deep/one.json", "a manifest names no folder of the machine"
    assert file.path == site.folder / "bank" / "deep" / "one.json"


def test_a_pack_without_a_folder_is_said(site: Site) -> None:
    site.install("acme-bank", "pack acme = acme_bank_code:FOLDER", module=PACK)
    with pytest.raises(ConfigError, match=r"The pack 'acme' of package acme-bank 1\.0 gives no folder"):
        read_scenarios(["pack:acme"])
    (site.folder / "bank").mkdir()
    with pytest.raises(InputError, match="pack:acme: no scenario file"):
        read_scenarios(["pack:acme"])


def test_an_unknown_pack_is_refused_with_those_there_are(site: Site) -> None:
    with pytest.raises(InputError, match=r"pack:acne: no such scenario pack\. Available: none is installed\."):
        read_scenarios(["pack:acne"])
    site.install("acme-bank", "pack acme = acme_bank_code:FOLDER", module=PACK)
    with pytest.raises(InputError, match=r"pack:acne: no such scenario pack\. Available: pack:acme\."):
        read_scenarios(["pack:acne"])


# Exporters


SINK = """
class Counter:
    def __init__(self, folder):
        self.path, self.rows = folder / "counts.txt", {}
    def add(self, table, row):
        self.rows[table.name] = self.rows.get(table.name, 0) + 1
    def close(self):
        self.path.write_text(repr(sorted(self.rows.items())))
        return [self.path]
    def abandon(self): ...
"""


def test_an_exporter_writes_beside_the_built_in_formats(site: Site, tmp_path: Path) -> None:
    site.install("acme-counts", "exporter counts = acme_counts_code:Counter", module=SINK)
    run = shared_run()
    files = exporting.export(run, tmp_path / "out", ["counts", "jsonl"])
    assert {path.name for path in files} >= {"counts.txt", "trial.jsonl", "codebook.md"}
    counts = dict(eval((tmp_path / "out" / "counts.txt").read_text()))
    lines = (tmp_path / "out" / "claim.jsonl").read_text(encoding="utf-8").splitlines()
    assert counts["claim"] == len(lines) > 0
    assert counts["run"] == counts["trial"] == 1


def test_an_unknown_format_is_refused_with_the_plugins_among_those_known(site: Site, tmp_path: Path) -> None:
    site.install("acme-counts", "exporter counts = acme_counts_code:Counter", module=SINK)
    with pytest.raises(InputError, match=r"'count' .*inspect, counts\.$"):
        exporting.export(tmp_path, tmp_path / "out", ["count"])


# What a manifest records


def test_a_manifest_records_the_plugins_used_and_no_others(site: Site) -> None:
    site.install("acme-models", "adapter acme = acme_models_code:Adapter", "adapter spare = acme_models_code:Adapter")
    site.install("acme-bank", "pack acme = acme_bank_code:FOLDER", version="0.9", module=PACK)
    used = plugins.used_by(["acme", "fake", "openai"], ["scenarios/v1", "pack:acme"])
    assert used == {"adapter:acme": "acme-models 1.0", "pack:acme": "acme-bank 0.9"}
    assert plugins.used_by(["fake"], ["scenarios/v1"]) == {}


def test_a_run_without_plugins_says_so(tmp_path: Path) -> None:
    manifest = json.loads((make_run(tmp_path) / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["plugins"] == {}


# The command


def test_the_command_lists_every_plugin_with_its_state(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert call("plugins") == (0, "No plugins are installed. docs/plugins.md shows how to write one.\n", "")
    site.install("acme-models", "adapter acme = acme_models_code:Adapter", "adapter xai = acme_models_code:Adapter")
    code, out, _ = call("plugins")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["kind", "name", "package", "and", "entry", "point", "state"],
        ["adapter", "acme", "acme-models", "1.0", "usable"],
        ["acme_models_code:Adapter"],
        ["adapter", "xai", "acme-models", "1.0", "shadowed", "by", "a", "built-in"],
        ["acme_models_code:Adapter"],
    ]


def test_the_command_says_what_is_wrong_and_exits_with_3(site: Site) -> None:
    site.install("acme-one", "adapter acme = acme_one_code:Adapter", "pack acme = acme_one_code:number")
    site.install("acme-two", "adapter acme = acme_two_code:Adapter")
    code, out, _ = call("plugins", "--json")
    listed = [(one["kind"], one["package"], one["state"], one["note"]) for one in json.loads(out)]
    twice = plugins.clash_error(plugins.found("adapter"))
    assert code == 3
    assert listed == [
        ("adapter", "acme-one", "unusable", str(twice)),
        ("adapter", "acme-two", "unusable", str(twice)),
        (
            "pack",
            "acme-one",
            "unusable",
            "The pack 'acme' of package acme-one 1.0 gives no folder of scenario files but '7'.",
        ),
    ]
    code, out, _ = call("plugins")
    assert code == 3
    assert out.count("More than one adapter plugin is named 'acme'") == 1
    assert "gives no folder of scenario files" in out
