"""Chrome JSON of the JAX / XLA profiler (`*.trace.json.gz`): TPU, GPU and CPU backends, without cost and peaks."""

from traces.content import Content, Limits
from traces.reader import Reader
from traces.trace import Trace


def is_jax(content: Content) -> bool:
    """The profiler's own metadata, or processes named like XLA planes."""
    if content.json_start != b"{":
        return False
    return content.matches(rb'"highres-ticks"\s*:') or content.matches(rb'"name"\s*:\s*"/(?:host|device):')


def read(content: Content, limits: Limits) -> tuple[Trace, ...]:
    """One Trace for each device with events. Raises `CorruptTrace`, `EmptyTrace`, `TraceTooLarge`."""
    from traces.xplane.chrome_space import chrome_space  # imported by every process, needed by few
    from traces.xplane.convert import traces_of

    return traces_of(chrome_space(content, limits), limits)


READER = Reader("jax_chrome", "JAX Chrome trace (trace.json.gz)", is_jax, read)
