"""Ways to change a JSON file that leave it JSON: values, keys, order and nesting of what it says."""

import copy
import json
from random import Random
from typing import Any, Final

_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    7,
    2**31,
    2**53 + 1,
    2**62,
    2**63 - 1,
    2**63,
    -(2**63),
    10**30,
    0.5,
    -0.0,
    1e-9,
    1e300,
    1e15,
    86_400_000_001,
    "",
    "0",
    "-1",
    "7.0",
    "stream 7",
    "1712195495505582.988",
    "NaN",
    "[0, 1]",
    "[0, ...]",
    "\ud800",
    "\x00",
    "{}",
    "x" * 300,
    [],
    {},
    [[]],
    [[0]],
    [[2, 3], [3, 4]],
    ["float", "c10::BFloat16"],
    {"a": 1},
)
_KEYS: Final = (
    "ph",
    "cat",
    "name",
    "ts",
    "dur",
    "pid",
    "tid",
    "args",
    "device",
    "stream",
    "correlation",
    "traceEvents",
)
_MOST_EDITS: Final = 4
_WIDEST_EXACT: Final = 2**53
_INDENTS: Final = (None, None, None, 2)


def reshaped_json(data: bytes, random: Random) -> bytes | None:
    """The document after one to four changes; None where it is no JSON that can be parsed."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    for _ in range(random.randint(1, _MOST_EDITS)):
        containers = _containers(document)
        if containers:
            _change(random.choice(containers), random)
    return json.dumps(document, indent=random.choice(_INDENTS)).encode("utf-8", "surrogatepass")


def _containers(value: Any) -> list[Any]:
    """Every object and list in a document, that is not empty."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (dict, list)) and one:
            found.append(one)
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return found


def _change(container: Any, random: Random) -> None:
    keys = list(container) if isinstance(container, dict) else list(range(len(container)))
    key, what = random.choice(keys), random.randrange(8)
    if what == 0:
        del container[key]
    elif what == 1 and isinstance(container, list):
        container.insert(random.randint(0, len(container)), copy.deepcopy(container[key]))
    elif what == 1:
        container[random.choice(_KEYS)] = container.pop(key)
    elif what == 2:
        other = random.choice(keys)
        container[key], container[other] = container[other], container[key]
    elif what == 3 and isinstance(container[key], (int, float)) and not isinstance(container[key], bool):
        container[key] = _near(container[key], random)
    elif what == 4:
        container[key] = _deep(container[key], random)
    elif what == 5 and isinstance(container, list):
        random.shuffle(container)
    else:
        container[key] = copy.deepcopy(random.choice(_VALUES))


def _near(number: int | float, random: Random) -> int | float:
    if isinstance(number, int) and abs(number) > _WIDEST_EXACT:
        return random.choice((-number, number + 1, number - 1, number // 1000))
    return random.choice((-number, number * 1000, number + 1, number + 0.001, number / 7))


def _deep(value: Any, random: Random) -> Any:
    for _ in range(random.choice((1, 2, 70))):
        value = [value] if random.random() < 0.5 else {"a": value}
    return value
