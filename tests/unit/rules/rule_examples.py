"""Short ways to write a file of name rules in a test."""

from pathlib import Path

from traces.rules import KernelRules, read_rules, rules_with

PATCHWORK = """
[[rule]]
table = "kind"
meaning = "moe"
id = "patchwork"
pattern = '^patchwork_(?:pack|unpack)_kernel'
examples = ['patchwork_pack_kernel<8>(int)', 'patchwork_unpack_kernel']
not_examples = ['my_patchwork_pack_kernel']
source = "our own mixture of experts"
"""


def entry(**fields: object) -> str:
    """One entry of a file; the fields of a sound one unless given, left out where None."""
    sound: dict[str, object] = {
        "table": "kind",
        "meaning": "gemm",
        "id": "own",
        "pattern": "^own_kernel",
        "examples": ["own_kernel"],
    }
    stated = {name: value for name, value in (sound | fields).items() if value is not None}
    return "[[rule]]\n" + "".join(f"{name} = {_toml(value)}\n" for name, value in stated.items())


def rules_of(folder: Path, *texts: str) -> KernelRules:
    """The rules in force where a file holds these entries."""
    path = folder / "own.toml"
    path.write_text("\n".join(texts))
    return rules_with(read_rules(path))


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f"'''{value}'''" if isinstance(value, str) else str(value)
