"""Commands of the command line: one module each, light to import; what is heavy is imported when it runs."""

import argparse
from typing import Protocol

from app.commands import (
    ask,
    audit,
    catalog,
    compare,
    demo,
    diagnose,
    eval,
    history,
    knowledge,
    levers,
    plan,
    project,
    rank,
    rl,
    serve,
    simulate,
    size,
    summarise,
)


class Command(Protocol):
    """What a command module offers."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it; returns the exit code."""
        ...


COMMANDS: dict[str, Command] = {
    "serve": serve,
    "plan": plan,
    "ask": ask,
    "diagnose": diagnose,
    "summarise": summarise,
    "compare": compare,
    "project": project,
    "levers": levers,
    "rank": rank,
    "size": size,
    "simulate": simulate,
    "rl": rl,
    "eval": eval,
    "catalog": catalog,
    "knowledge": knowledge,
    "history": history,
    "audit": audit,
    "demo": demo,
}
