"""Documents that lag the code fail here."""

import gzip
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_architecture_names_only_paths_that_exist():
    text = (ROOT / "docs/architecture.md").read_text()
    for path in re.findall(r"`((?:app|agents|knowledge_base|projector|traces)/[\w./]*)`", text):
        assert (ROOT / path).exists(), path


def test_every_package_is_described():
    text = (ROOT / "docs/architecture.md").read_text()
    for package in ("app", "agents", "knowledge_base", "projector", "traces"):
        assert f"`{package}/`" in text


def test_decisions_are_numbered_without_gaps_and_have_the_four_parts():
    files = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert [int(file.name[:4]) for file in files] == list(range(1, len(files) + 1))
    for file in files:
        text = file.read_text()
        for part in ("**Context.**", "**Decision.**", "**Consequences.**", "**Alternatives.**"):
            assert part in text, f"{file.name} lacks {part}"


def test_every_make_target_the_readme_names_exists():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`?make ([a-z-]+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_every_pin_is_exact():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9._-]+==[^=]+", line), line


def test_packages_resolve_to_this_project():
    import agents
    import traces

    assert Path(agents.__file__).is_relative_to(ROOT)
    assert Path(traces.__file__).is_relative_to(ROOT)


def test_test_files_have_names_of_their_own():
    """Pytest imports test files by base name: two of one name cannot be collected together."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})


def test_the_readme_names_the_port_the_service_listens_on():
    from app.settings import Settings

    ports = set(re.findall(r"localhost:(\d+)", (ROOT / "README.md").read_text()))
    assert ports == {str(Settings.model_fields["port"].default)}


def test_every_module_of_the_projector_but_the_vocabulary_is_forbidden_to_traces():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    listed = next(each["forbidden_modules"] for each in contracts if each.get("source_modules") == ["traces"])
    entries = list((ROOT / "projector").iterdir())
    modules = {path.stem for path in entries if path.suffix == ".py" or (path / "__init__.py").exists()}
    # errors import nearest, and name no other module
    allowed = {"specs", "breakdown", "units", "errors", "nearest", "__init__"}
    assert {f"projector.{name}" for name in modules - allowed} == set(listed)


def test_no_bundled_file_names_a_folder_of_the_machine_it_was_made_on():
    # words put together here so that this file does not contain them
    folders = [f"/{name}/".encode() for name in ("wor" + "k", "roo" + "t")]
    own = [
        path
        for path in (ROOT / "tests/data/traces").rglob("*")
        if path.parent.name in ("jax", "small") and path.is_file()
    ]
    assert own
    for path in own:
        data = path.read_bytes()
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        assert not any(folder in data for folder in folders), path.name
