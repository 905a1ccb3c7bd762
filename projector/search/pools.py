"""Prefill pools of a serving search: a small menu of engines that only prefill, beside those that decode."""

from projector.admissible import admissible
from projector.search.factors import divisors
from projector.search.menu import Search

DEGREES = ("prefill_tp", "prefill_pp", "prefill_attention_dp", "prefill_ep", "prefill_etp")
Pool = dict[str, int]
NO_POOL: Pool = {"prefill_replicas": 0, **dict.fromkeys(DEGREES, 1)}


def pool_forms(search: Search, shares: tuple[int, ...]) -> list[Pool]:
    """The pools to try, NO_POOL first; that of the current plan and those that constraints name among them.

    shares: a pool takes one of so many parts of the devices, or all but one of them. Its engines are as large as a fast
    domain, or half of that: slices of every layer (tp), or with experts also whole requests a rank and experts spread
    (attention_dp, ep).
    """
    fixed = {name: int(value) for name, value in search.constraints.fixed.items() if name in NO_POOL}
    own: Pool = {name: int(getattr(search.base, name)) for name in NO_POOL}
    forms: list[Pool] = [NO_POOL, own, own | fixed]
    if fixed.get("prefill_replicas") != 0:
        parts = {
            part for share in shares for part in (search.devices // share, search.devices - search.devices // share)
        }
        for part in sorted(parts - {0, search.devices}):
            forms += [form | fixed for form in _engines(search, part)]
    distinct = list({tuple(form.items()): form for form in forms}.values())
    return [form for form in distinct if _possible(search, form)]


def pool_devices(pool: Pool) -> int:
    """Devices of a pool."""
    return pool["prefill_replicas"] * pool["prefill_attention_dp"] * pool["prefill_tp"] * pool["prefill_pp"]


def _engines(search: Search, devices: int) -> list[Pool]:
    """Pools of so many devices."""
    largest = max(size for size in divisors(devices) if size <= (search.domain_devices or devices))
    moe = search.architecture is not None and search.architecture.is_moe
    forms: list[Pool] = []
    for size in (largest, largest // 2) if largest % 2 == 0 else (largest,):
        engines = {**NO_POOL, "prefill_replicas": devices // size}
        forms.append({**engines, "prefill_tp": size, "prefill_etp": size if moe else 1})
        if moe and size > 1:
            forms.append({**engines, "prefill_attention_dp": size, "prefill_ep": size})
    return forms


def _possible(search: Search, pool: Pool) -> bool:
    """Whether the pool leaves devices to decode on, suits the model, and keeps the constraints."""
    if pool_devices(pool) >= search.devices:
        return False
    if pool["prefill_replicas"] == 0:
        return pool == NO_POOL
    given = (search.architecture, search.cluster, search.hardware, search.workload)
    suits = all(pool[name] == 1 or pool[name] in admissible(name, *given).values for name in DEGREES)
    ranks = pool["prefill_attention_dp"] * pool["prefill_tp"]
    return suits and ranks % (pool["prefill_ep"] * pool["prefill_etp"]) == 0
