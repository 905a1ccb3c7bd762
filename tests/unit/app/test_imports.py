"""What must stay light stays light."""

import subprocess
import sys
from pathlib import Path

HEAVY = {"torch", "litellm", "chromadb", "langgraph", "pandas", "sentence_transformers", "transformers", "scipy"}


def loaded_after(code: str) -> set[str]:
    """Top-level modules loaded by a fresh interpreter that ran `code`."""
    report = "import sys; sys.stdout.flush(); print(' '.join({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_service_loads_nothing_heavy() -> None:
    assert loaded_after("import app.main") & HEAVY == set()


def test_the_openapi_document_needs_nothing_heavy_either(tmp_path) -> None:
    imports = "from app.main import create_app; from app.settings import Settings"
    code = f"{imports}; create_app(Settings(data_dir={str(tmp_path)!r})).openapi()"
    assert loaded_after(code) & HEAVY == set()


def test_commands_that_need_no_knowledge_load_nothing_heavy() -> None:
    trace = Path(__file__).parents[2] / "data/traces/a100_ddp_resnet.json.gz"
    job = "--model llama-3.1-8b --chip h100-sxm --chips 8 --input-len 512 --output-len 128 --concurrency 8"
    for arguments in (["diagnose", str(trace), "--json"], ["project", *job.split(), "--plan", "tp=8", "--json"]):
        loaded = loaded_after(f"from app.cli import main; assert main({arguments!r}) == 0")
        assert loaded & (HEAVY | {"fastapi", "sqlalchemy", "uvicorn"}) == set()
