"""`python -m tests.validation.accuracy_page GROUNDTRUTH`: fill docs/accuracy.json, draw its charts, write the page.

Without GROUNDTRUTH the page is written again from the JSON as it stands, with the comparison --peers names, if it does.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .charts import charts
from .figures import Figures, Peers, as_text, rounded
from .gather import ROWS, WORKLOADS, gather
from .page import FOLDER, page

DOCS = Path(__file__).parents[3] / "docs"
JSON = "accuracy.json"
NEEDED = (ROWS, WORKLOADS)


def written(docs: Path, figures: Figures) -> dict[Path, str]:
    """Every file the figures make, by its path, with its text."""
    drawn = {docs / FOLDER / name: text for name, text in charts(figures).items()}
    return {docs / JSON: as_text(figures), docs / "accuracy.md": page(figures), **drawn}


def kept(docs: Path) -> Figures:
    """The figures that stand in the folder."""
    return Figures.model_validate_json((docs / JSON).read_text(encoding="utf-8"))


def _figures(groundtruth: Path | None, peers: Path | None, docs: Path) -> Figures:
    """Gathered from the folder where one is named, else as they stand but for the comparison.

    FileNotFoundError where there is nothing.
    """
    if groundtruth is not None:
        lacking = [name for name in NEEDED if not (groundtruth / name).is_file()]
        if lacking:
            raise FileNotFoundError(f"{groundtruth} lacks {' and '.join(lacking)}")
        return gather(groundtruth, _peers(peers, docs), lambda words: print(words, file=sys.stderr))
    if not (docs / JSON).is_file():
        raise FileNotFoundError(f"no {docs / JSON} yet: name a folder of measured rows")
    compared = _peers(peers, docs)
    document = kept(docs).model_dump(mode="json") | {"peers": compared and rounded(compared.model_dump(mode="json"))}
    return Figures.model_validate_json(json.dumps(document))


def _peers(result: Path | None, docs: Path) -> Peers | None:
    """The comparison with other projectors: a new result where there is one, else what the page has of an earlier."""
    if result is not None and result.is_file():
        return Peers.model_validate_json(result.read_text(encoding="utf-8"))
    if (docs / JSON).is_file():
        earlier = json.loads((docs / JSON).read_text(encoding="utf-8"))["peers"]
        return None if earlier is None else Peers.model_validate_json(json.dumps(earlier))
    return None


def main(arguments: Sequence[str]) -> int:
    """Gather, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groundtruth", type=Path, nargs="?", help="folder of measured rows and workloads")
    parser.add_argument("--peers", type=Path, help="result of the comparison with other projectors, where there is one")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the page goes (default: docs)")
    given = parser.parse_args(arguments)
    started = time.process_time()
    try:
        figures = _figures(given.groundtruth, given.peers, given.docs)
    except FileNotFoundError as fault:
        print(fault, file=sys.stderr)
        return 2
    (given.docs / FOLDER).mkdir(parents=True, exist_ok=True)
    for path, text in written(given.docs, figures).items():
        path.write_text(text, encoding="utf-8")
    print(json.dumps({"cpu_s": round(time.process_time() - started, 1)}), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
