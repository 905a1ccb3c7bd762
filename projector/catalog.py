"""The catalogue of chips and models: one file each, found by scanning the folder, validated and cached.

A name that is a file's name costs one file; an alias or a hub id costs all files of its kind, once.
"""

import json
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from projector.device_names import match_device
from projector.errors import InvalidDescription, UnknownName
from projector.hf_config import from_hf_config
from projector.names import normalise
from projector.refused_models import refused_model, refused_models
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile

__all__ = [
    "architecture",
    "architectures",
    "catalog_fingerprint",
    "chip",
    "chips",
    "from_hf_config",
    "load_architectures",
    "load_chips",
    "match_chip",
    "refused_models",
]

CHIP_FOLDER = Path(__file__).parent / "chips"
ARCHITECTURE_FOLDER = Path(__file__).parent / "architectures"

R = TypeVar("R")


def chip(name: str) -> HardwareProfile:
    """The chip with this id or alias; case, spaces, '_' and '-' do not matter. UnknownName with the nearest names."""
    path = _chip_files().get(normalise(name))
    return _look_up("chip", name, _chip_index()) if path is None else _bundled_chip(path)


def chips() -> tuple[HardwareProfile, ...]:
    """Every chip of the catalogue, by id."""
    return tuple(_bundled_chip(path) for path in _chip_files().values())


def architecture(name: str) -> ModelArchitecture:
    """The model with this name or hub id, in any case.

    InvalidDescription with the reason for a model that is known and not modelled; UnknownName, with the nearest names,
    for any other.
    """
    path = _architecture_files().get(normalise(name))
    if path is not None:
        return _bundled_architecture(path)
    refused = refused_model(name)
    if refused is not None:
        raise InvalidDescription(f"the model {name!r} is not modelled: {refused.reason}")
    return _look_up("model", name, _architecture_index())


def architectures() -> tuple[ModelArchitecture, ...]:
    """Every model of the catalogue, by name."""
    return tuple(_bundled_architecture(path) for path in _architecture_files().values())


def match_chip(device_name: str, hbm_bytes: float | None = None) -> HardwareProfile | None:
    """The chip a profiler's device string means, None when unsure (see `device_names.match_device`)."""
    return match_device(device_name, hbm_bytes, chips())


@cache
def catalog_fingerprint() -> str:
    """sha256 over the names and bytes of all chip and model files: the same catalogue, the same answer."""
    digest = sha256()
    for path in (*_files(CHIP_FOLDER, "yaml"), *_files(ARCHITECTURE_FOLDER, "json")):
        content = path.read_bytes()
        digest.update(f"{path.parent.name}/{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def load_chips(folder: Path) -> tuple[HardwareProfile, ...]:
    """The chips of a folder, one YAML file each, named for its id.

    InvalidDescription naming the file when it is not YAML, repeats a key, breaks the schema or is misnamed,
    and when two chips claim one name.
    """
    found = tuple(_load_chip(path) for path in _files(folder, "yaml"))
    _index("chip", ((profile, (profile.id, *profile.aliases)) for profile in found))
    return found


def load_architectures(folder: Path) -> tuple[ModelArchitecture, ...]:
    """The models of a folder, one JSON file each, named for the model. Errors as in `load_chips`."""
    found = tuple(_load_architecture(path) for path in _files(folder, "json"))
    _index("model", ((model, _names_of(model)) for model in found))
    return found


def _load_chip(path: Path) -> HardwareProfile:
    profile = _read(path, _parse_yaml, HardwareProfile.model_validate)
    return _require_name_of_file(path, profile.id, profile)


def _load_architecture(path: Path) -> ModelArchitecture:
    model = _read(path, _parse_json, ModelArchitecture.model_validate)
    return _require_name_of_file(path, model.name, model)


_bundled_chip = cache(_load_chip)
_bundled_architecture = cache(_load_architecture)


@cache
def _chip_files() -> dict[str, Path]:
    return {normalise(path.stem): path for path in _files(CHIP_FOLDER, "yaml")}


@cache
def _architecture_files() -> dict[str, Path]:
    return {normalise(path.stem): path for path in _files(ARCHITECTURE_FOLDER, "json")}


@cache
def _chip_index() -> dict[str, HardwareProfile]:
    return _index("chip", ((profile, (profile.id, *profile.aliases)) for profile in chips()))


@cache
def _architecture_index() -> dict[str, ModelArchitecture]:
    return _index("model", ((model, _names_of(model)) for model in architectures()))


def _names_of(model: ModelArchitecture) -> tuple[str, ...]:
    return (model.name,) if model.hf_id is None else (model.name, model.hf_id)


def _look_up(kind: str, name: str, index: dict[str, R]) -> R:
    try:
        return index[normalise(name)]
    except KeyError:
        raise UnknownName(kind, name, index) from None


def _index(kind: str, named: Iterable[tuple[R, tuple[str, ...]]]) -> dict[str, R]:
    index: dict[str, R] = {}
    for entry, names in named:
        for name in {normalise(name) for name in names}:
            if name in index:
                raise InvalidDescription(f"two entries of the catalogue claim the {kind} name {name!r}")
            index[name] = entry
    return index


def _files(folder: Path, extension: str) -> list[Path]:
    return sorted(folder.glob(f"*.{extension}"))


def _require_name_of_file(path: Path, name: str, described: R) -> R:
    if path.stem != name:
        raise InvalidDescription(f"{path.name} describes {name!r}", hint=f"rename it to {name}{path.suffix}")
    return described


def _read(path: Path, parse: Callable[[str], object], validate: Callable[[object], R]) -> R:
    try:
        return validate(parse(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidDescription(f"{path.name}: {where}: {first['msg']}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidDescription(f"{path.name} cannot be read: {error}") from error


def _parse_json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_without_repeats)


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a key occurs twice")
    return read


# the parser in C where PyYAML has it: five times as fast, the same result
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _StrictLoader(_SafeLoader):  # type: ignore[misc]
    """SafeLoader that refuses repeated keys: YAML would keep the last one silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(set(keys)) != len(keys):
            raise yaml.constructor.ConstructorError(None, None, "a key occurs twice", node.start_mark)
        return dict(super().construct_mapping(node, deep))


def _parse_yaml(text: str) -> object:
    return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader underneath
