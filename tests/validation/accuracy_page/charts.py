"""The charts of the page, from its figures."""

from collections.abc import Callable

from .bars import beside_peers, by_source, top_k
from .figures import Figures
from .scatters import by_chip, memory, step_time, sweeps


def charts(figures: Figures) -> dict[str, str]:
    """File name -> SVG, of every chart there are figures for."""
    made: dict[str, Callable[[], str]] = {
        "step_time.svg": lambda: step_time(figures.step_times),
        "by_chip.svg": lambda: by_chip(figures.step_times),
        "by_source.svg": lambda: by_source(figures.parts),
    }
    if figures.sweep_plots:
        made["sweeps.svg"] = lambda: sweeps(figures.sweep_plots)
    if figures.memory_points:
        made["memory.svg"] = lambda: memory(figures.memory_points)
    if figures.hits:
        made["topk.svg"] = lambda: top_k(figures.hits)
    if figures.peers is not None:
        peers = figures.peers
        made["peers.svg"] = lambda: beside_peers(peers)
    return {name: draw() for name, draw in made.items()}
