"""The YAML head of a note, read strictly: no aliases, no repeated keys, no tags, bounded nesting."""

from typing import Any

import yaml

from projector.errors import InvalidDescription

_FENCE = "---"


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses what would be dropped or multiplied without a word."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed", self.get_mark())
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be plain text", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} appears twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def split(text: str, *, origin: str) -> tuple[str, str]:
    """(front matter, body) of a note whose first line is ---. InvalidDescription: no fence, or none that closes."""
    opening, _, rest = text.partition("\n")
    if opening.strip() != _FENCE:
        raise InvalidDescription(f"note {origin}: no front matter", hint="the first line is ---")
    header, closing, body = ("\n" + rest).partition(f"\n{_FENCE}\n")
    if not closing:
        raise InvalidDescription(f"note {origin}: front matter is not closed", hint="end it with a line ---")
    return header, body


def load(header: str, *, origin: str) -> dict[str, Any]:
    """The mapping a front matter holds. InvalidDescription names the line that is wrong."""
    try:
        fields = yaml.load(header, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        # line 0 of the header stands for the opening fence, line 1 of the file
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InvalidDescription(f"note {origin}: front matter, line {line}: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidDescription(f"note {origin}: front matter: {error}") from error
    if not isinstance(fields, dict):
        raise InvalidDescription(f"note {origin}: front matter is not a mapping of keys to values")
    return fields
