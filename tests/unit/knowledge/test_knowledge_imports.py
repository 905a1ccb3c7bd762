import subprocess
import sys
from pathlib import Path

HEAVY = ("chromadb", "torch", "sentence_transformers", "transformers", "onnxruntime", "httpx")


def test_importing_the_knowledge_base_loads_nothing_heavy() -> None:
    """In a process of its own: other tests have loaded everything here."""
    code = (
        "import sys, knowledge_base.retrieve, knowledge_base.index, knowledge_base.store, knowledge_base.embed\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    root = Path(__file__).parents[3]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert run.stdout.strip() == "[]"
