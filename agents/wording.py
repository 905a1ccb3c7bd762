"""How numbers and foreign text are put into sentences, in one place."""

import unicodedata

from projector.units import bytes_to_gb, s_to_ms

QUOTE_LIMIT = 80


def quoted(text: str, limit: int = QUOTE_LIMIT) -> str:
    """Foreign text as one printable line of at most `limit` characters.

    Control, format and surrogate characters become spaces (they could forge lines or hide text), runs of white space
    one space. The result is still data: whoever writes markup escapes it there.
    """
    visible = "".join(" " if unicodedata.category(char).startswith("C") else char for char in text[: limit * 8])
    line = " ".join(visible.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def percent(frac: float) -> str:
    """0.123 -> '12.3 %'."""
    return f"{frac * 100:.1f} %"


def signed_percent(frac: float) -> str:
    """-0.123 -> '-12.3 %', 0.123 -> '+12.3 %'."""
    return f"{frac * 100:+.1f} %"


def duration(seconds: float) -> str:
    """Seconds with the unit a reader expects: '1.25 s', '12.3 ms', '85.0 us'; '0 s' of nothing."""
    if seconds == 0:
        return "0 s"
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{s_to_ms(seconds):.1f} ms"
    return f"{seconds * 1e6:.1f} us"


def gigabytes(size_bytes: float) -> str:
    """Bytes as decimal gigabytes: '61.2 GB'."""
    return f"{bytes_to_gb(size_bytes):.1f} GB"


def listed(words: list[str] | tuple[str, ...]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
