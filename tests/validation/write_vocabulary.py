"""Write traces/stored/words.txt: the words of the package's own text, which redaction leaves standing.

    python -m tests.validation.write_vocabulary

Words are runs of letters in string literals of traces/ (docstrings apart), in the patterns of its rule tables, in the
names of summary fields, and in the vocabularies of the projector the summary uses.
"""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = ROOT / "traces" / "stored" / "words.txt"
VOCABULARIES = ("projector/breakdown.py", "projector/specs/plan.py", "projector/specs/bottleneck.py")
# what serving engines write into the names of their steps, beside the words of our patterns for them
STEP_WORDS = ("sqsq", "sqsk", "sq", "sk", "bs", "toks")
# text that stands for somebody's names, not ours
EXAMPLE_KEYS = ("example", "examples", "not_examples", "source", "description")


def words() -> str:
    """The content of the file."""
    found = set(STEP_WORDS)
    for path in (*sorted((ROOT / "traces").rglob("*.py")), *(ROOT / name for name in VOCABULARIES)):
        tree = ast.parse(path.read_text("utf-8"))
        found.update(_words_of(tree))
    for path in sorted((ROOT / "traces").rglob("*.toml")):
        found.update(_letters(_without_examples(path.read_text("utf-8"))))
    return "\n".join(sorted(found)) + "\n"


def _words_of(tree: ast.Module) -> set[str]:
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)) and id(node) not in docstrings:
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            found |= _letters(text)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found |= _letters(node.target.id)  # a field of a record
    return found


def _without_examples(text: str) -> str:
    """Lines of a rule table but for the names it gives as examples."""
    kept: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                if key not in EXAMPLE_KEYS:
                    kept.append(str(key))
                    walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        else:
            kept.append(str(value))

    walk(tomllib.loads(text))
    return " ".join(kept)


def _letters(text: str) -> set[str]:
    without_escapes = re.sub(r"\\[a-zA-Z]", " ", text)
    return {run.lower() for run in re.findall(r"[a-zA-Z]+", without_escapes)}


if __name__ == "__main__":
    WORDS.write_text(words(), "ascii")
