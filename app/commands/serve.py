"""`shardwise serve`: the service, in the foreground."""

import argparse
import copy
import logging
import os
import socket
from pathlib import Path
from typing import Any

HELP = "run the HTTP service; everything else is configured by SHARDWISE_* variables"
FINISH_REQUESTS_S = 3
INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--host, --port, --data-dir."""
    parser.add_argument("--host", help="address to bind to (default 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to bind to (default 8421)")
    parser.add_argument("--data-dir", type=Path, help="folder of all state (default ./.shardwise)")


def run(arguments: argparse.Namespace) -> int:
    """Serve until the process is told to stop. DataDirBusy, InvalidSettings: nothing was started."""
    import uvicorn

    from app.daemon import any_at_work
    from app.errors import ServiceFailed
    from app.main import create_app
    from app.service import Service
    from app.settings import load_settings

    settings = load_settings(host=arguments.host, port=arguments.port, data_dir=arguments.data_dir)
    app = create_app(settings)
    service: Service = app.state.service

    class Server(uvicorn.Server):
        """Requests that wait for a plan are answered before the server waits for requests."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            service.runner.end_waits()
            await super().shutdown(sockets)

    config = uvicorn.Config(app, log_config=log_config(), timeout_graceful_shutdown=FINISH_REQUESTS_S)
    server = Server(config)
    with listening(settings.host, settings.port) as listener, service.alone():
        logging.getLogger("shardwise").info("listening on http://%s:%d", settings.host, settings.port)
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            if any_at_work():
                # nothing can stop a thread, and no library under it may hold up the end
                logging.shutdown()
                os._exit(INTERRUPTED)
    if not server.started:
        raise ServiceFailed("the service did not start", hint="the log above says why")
    return 0


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens. InvalidSettings: no such address here, the port is taken, or it is not ours to take."""
    from app.errors import InvalidSettings

    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise InvalidSettings(
            f"host {host!r} is no address of this machine", hint="--host or SHARDWISE_HOST"
        ) from error
    family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InvalidSettings(
            f"cannot listen on {host} port {port}: {reason}", hint="choose another --host or --port"
        ) from error
    return listener


def log_config() -> dict[str, Any]:
    """uvicorn's logging with everything on stderr, and ours beside it."""
    from uvicorn.config import LOGGING_CONFIG

    config = copy.deepcopy(LOGGING_CONFIG)
    config["handlers"]["access"]["stream"] = "ext://sys.stderr"
    config["loggers"]["shardwise"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config
