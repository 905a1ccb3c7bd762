"""`shardwise serve`: the service, in the foreground."""

import argparse
import copy
from pathlib import Path
from typing import Any

HELP = "run the HTTP service; everything else is configured by SHARDWISE_* variables"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--host, --port, --data-dir."""
    parser.add_argument("--host", help="address to bind to (default 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to bind to (default 8421)")
    parser.add_argument("--data-dir", type=Path, help="folder of all state (default ./.shardwise)")


def run(arguments: argparse.Namespace) -> int:
    """Serve until the process is told to stop."""
    import uvicorn

    from app.main import create_app
    from app.settings import load_settings

    settings = load_settings(host=arguments.host, port=arguments.port, data_dir=arguments.data_dir)
    uvicorn.run(create_app(settings), host=settings.host, port=settings.port, log_config=log_config())
    return 0


def log_config() -> dict[str, Any]:
    """uvicorn's logging with everything on stderr, and ours beside it."""
    from uvicorn.config import LOGGING_CONFIG

    config = copy.deepcopy(LOGGING_CONFIG)
    config["handlers"]["access"]["stream"] = "ext://sys.stderr"
    config["loggers"]["shardwise"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config
