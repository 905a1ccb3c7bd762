"""Dockerfile and docker-compose.yml, read: no container engine is needed to see that they fit the project."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from app.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def test_the_compose_file_follows_the_compose_specification(compose) -> None:
    schema = json.loads((ROOT / "tests/data/compose/compose-spec.json").read_text())
    jsonschema.Draft7Validator(schema).validate(compose)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate(compose | {"service": {}})


def test_every_variable_is_a_setting_and_its_value_is_accepted(compose) -> None:
    set_here = compose["services"]["api"]["environment"]
    in_image = dict(re.findall(rf"({PREFIX}\w+)=(\S+)", DOCKERFILE))
    names = {name.removeprefix(PREFIX).lower() for name in {*set_here, *in_image}}
    assert names <= set(Settings.model_fields)
    values = {name.removeprefix(PREFIX).lower(): value for name, value in set_here.items() if value is not None}
    settings = Settings(**values)
    assert (settings.chroma_host, settings.chroma_port) == ("chroma", 8000)
    assert compose["services"]["api"]["ports"] == [f"127.0.0.1:{settings.port}:{settings.port}"]
    assert str(settings.data_dir) == "/data"


def test_server_and_client_are_one_pinned_release_of_chroma(compose) -> None:
    images = {service["image"] for service in compose["services"].values()}
    assert len(images) == 1
    assert "-c constraints.txt" in DOCKERFILE
    assert re.search(r"^chromadb==\d+\.\d+\.\d+$", (ROOT / "constraints.txt").read_text(), re.M)


def test_every_service_is_watched_and_may_do_little(compose) -> None:
    for service in compose["services"].values():
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"] is True
        (volume,) = service["volumes"]
        name, _, target = volume.partition(":")
        assert name in compose["volumes"]
        assert target == "/data"
    assert "ports" not in compose["services"]["chroma"]


def test_the_image_runs_as_nobody_special_on_a_supported_python() -> None:
    users = re.findall(r"^USER (\S+)$", DOCKERFILE, re.M)
    assert users == ["shardwise"]
    assert "useradd --uid 10001" in DOCKERFILE
    version = re.search(r"^ARG PYTHON_VERSION=(\d+)\.(\d+)$", DOCKERFILE, re.M)
    assert version is not None
    assert PROJECT["project"]["requires-python"] == f">={version[1]}.{version[2]}"
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)) == {"python:${PYTHON_VERSION}-slim"}


def test_the_image_holds_every_package_and_what_it_is_built_from() -> None:
    copied = {word for line in re.findall(r"^COPY (?!--)(.+)$", DOCKERFILE, re.M) for word in line.split()[:-1]}
    packages = {name.rstrip("*") for name in PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert packages | {"pyproject.toml", "constraints.txt", PROJECT["project"]["readme"], "LICENSE"} == copied
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_in == copied
    assert all((ROOT / name).exists() for name in copied - {PROJECT["project"]["readme"]})
    scripts = PROJECT["project"]["scripts"]
    assert json.loads(DOCKERFILE.rsplit("CMD ", 1)[1])[0] in scripts


def test_uv_is_the_release_that_make_uses() -> None:
    pinned = re.search(r"^ARG UV_VERSION=(\S+)$", DOCKERFILE, re.M)
    assert pinned is not None
    assert f"uv=={pinned[1]}" in (ROOT / ".ci/bootstrap").read_text()
