"""Spellings of one name: case, spaces, '_' and '-' do not matter."""

import re


def normalise(name: str) -> str:
    """The one spelling under which names are compared: 'A100_80 SXM' and 'a100-80-sxm' are the same."""
    return re.sub(r"[\s_-]+", "-", name.strip().lower())
