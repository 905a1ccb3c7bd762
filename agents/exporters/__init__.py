"""Exporters: one framework's launch configuration a file, found by scanning the folder for `EXPORTER`."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from agents.exporters.exporter import Exporter
from projector.errors import UnknownName

__all__ = ["exporter", "exporters"]


@cache
def exporters() -> tuple[Exporter, ...]:
    """Every `EXPORTER` of the folder, by name of its framework."""
    modules = (import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__))
    found = [module.EXPORTER for module in modules if hasattr(module, "EXPORTER")]
    return tuple(sorted(found, key=lambda each: str(each.framework)))


def exporter(framework: str) -> Exporter:
    """The exporter of this framework, in any case. UnknownName with the nearest ones."""
    for each in exporters():
        if each.framework == framework.strip().lower():
            return each
    raise UnknownName("framework", framework, (each.framework for each in exporters()))
