"""A launch configuration as text that is safe to copy: shell quoting by shlex, YAML by PyYAML."""

import shlex
from collections.abc import Iterator, Sequence

import yaml

from agents.exporters.exporter import LaunchConfig, Setting
from agents.wording import quoted
from projector.errors import InvalidDescription

COMMENT_LIMIT = 400


def command_arguments(settings: Sequence[Setting]) -> tuple[str, ...]:
    """Settings as `--name value` tokens, a switch alone."""
    return tuple(token for setting in settings for token in _tokens(setting))


def pair_arguments(settings: Sequence[Setting]) -> tuple[str, ...]:
    """Settings as `name=value` tokens."""
    return tuple(f"{setting.name}={written(setting)}" for setting in settings)


def written(setting: Setting) -> str:
    """The value as the framework reads it: true and false in lower case."""
    return str(setting.value).lower() if isinstance(setting.value, bool) else str(setting.value)


def shell(config: LaunchConfig) -> str:
    """The command for a POSIX shell, one argument a line, under comments that say what it is not.

    Every token is quoted; comments are single printable lines, so nothing in a name can end one.
    """
    lines = [*_comments(config)]
    if config.command:
        lines.append(" \\\n  ".join(_lines(config)))
    return "\n".join(lines) + "\n"


def yaml_file(config: LaunchConfig) -> str:
    """The configuration file's text. InvalidDescription where the framework reads none."""
    if config.config_file is None:
        raise InvalidDescription(f"{config.title} has no configuration file here", hint="use the command instead")
    values = {setting.name: _plain(setting) for setting in config.config_file.settings}
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=10_000)
    return "\n".join([*_comments(config), text])


def _comments(config: LaunchConfig) -> Iterator[str]:
    yield _comment(f"{config.title}, arguments as of {config.version}")
    if not config.command:
        yield _comment(f"Cannot be launched with this plan: {config.refused[0].reason}")
        return
    if not config.is_the_plan:
        yield _comment("NOT the plan as it stands:")
    for refusal in config.refused:
        effect = "nothing runs differently" if refusal.inert else f"instead: {refusal.instead}"
        yield _comment(f"{refusal.field} = {refusal.value} cannot be said: {refusal.reason}; {effect}")
    if config.copies > 1:
        yield _comment(f"Start {config.copies} of these side by side.")
    for placeholder in config.placeholders:
        yield _comment(f"Fill in {placeholder.token}: {placeholder.meaning}")


def _comment(text: str) -> str:
    return f"# {quoted(text, COMMENT_LIMIT)}"


def _lines(config: LaunchConfig) -> Iterator[str]:
    """The quoted command in lines: a flag opens one for itself and its values, as do a script and a name=value pair."""
    line = _environment(config)
    for token in config.command:
        waits = len(line) == 1 and line[0].startswith("--")
        if line and (token.startswith("--") or token.endswith((".py", ".yml")) or ("=" in token and not waits)):
            yield shlex.join(line)
            line = []
        line.append(token)
    yield shlex.join(line)


def _environment(config: LaunchConfig) -> list[str]:
    unset = [token for each in config.environment if each.value is None for token in ("-u", each.name)]
    assigned = [f"{each.name}={each.value}" for each in config.environment if each.value is not None]
    return ["env", *unset, *assigned] if config.environment else []


def _tokens(setting: Setting) -> tuple[str, ...]:
    if setting.value is None:
        return (setting.name,)
    return (setting.name, *setting.value) if isinstance(setting.value, tuple) else (setting.name, written(setting))


def _plain(setting: Setting) -> object:
    """The value as YAML knows it: a switch is true, several words are a list."""
    if setting.value is None:
        return True
    return list(setting.value) if isinstance(setting.value, tuple) else setting.value
