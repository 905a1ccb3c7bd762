"""Typed reading of config keys: a whole number, a switch, or a refusal that names the key."""

from collections.abc import Mapping

from projector.errors import InvalidDescription
from projector.hf.families import Family
from projector.specs.record import MOST_TOKENS

Config = Mapping[str, object]


def with_common_names(config: Config, family: Family) -> Config:
    """The config with the family's own key names copied to the common ones. A contradiction is refused."""
    named = dict(config)
    for common, own in family.keys.items():
        if own not in config:
            continue
        if config.get(common) not in (None, config[own]):
            raise InvalidDescription(f"config says {common} {config[common]!r} and {own} {config[own]!r}")
        named[common] = config[own]
    return named


def optional_count(config: Config, key: str) -> int | None:
    """A whole number from 0 to MOST_TOKENS, or None where the key is missing or null."""
    value = config.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidDescription(f"config key {key} is {value!r}, not a whole number")
    if value > MOST_TOKENS:
        raise InvalidDescription(f"config key {key} is above {MOST_TOKENS}, more than any model has")
    return value


def count(config: Config, key: str) -> int:
    """A whole number from 1 on that has to be there."""
    value = optional_count(config, key)
    if value is None:
        raise missing(key)
    if value == 0:
        raise InvalidDescription(f"config key {key} is 0")
    return value


def first_count(config: Config, *keys: str) -> int | None:
    """The number several keys are names of; None where none is there. Refused where they disagree."""
    found = {key: value for key in keys if (value := optional_count(config, key)) is not None}
    if len(set(found.values())) > 1:
        said = " and ".join(f"{key} {value}" for key, value in found.items())
        raise InvalidDescription(f"config says {said}")
    return next(iter(found.values()), None)


def switch(config: Config, key: str, default: bool) -> bool:
    """True or false; `default` where the key is missing or null."""
    value = config.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InvalidDescription(f"config key {key} is {value!r}, not true or false")
    return value


def missing(key: str) -> InvalidDescription:
    """The refusal of a config that lacks a key."""
    return InvalidDescription(f"config lacks {key}", hint="nothing is guessed: pass the whole config.json")
