"""The micro-cases of the diagnosis: how many are right, overall and by trap, and every miss with its reason.

python -m tests.validation.micro_cases
"""

import sys
from collections import defaultdict
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "unit" / "diagnosis_cases"))

GOAL = 0.95


def main() -> int:
    """Print the table; 1 below the goal."""
    from all_cases import CASES
    from micro_case import missed

    told = [(case, missed(case, case.diagnosis())) for case in CASES]
    by_trap: dict[str, list[str]] = defaultdict(list)
    for case, why in told:
        by_trap[case.adversarial or "plain"].append(why)
    print(f"{'trap':<44} right")
    for trap, reasons in sorted(by_trap.items()):
        print(f"{trap:<44} {reasons.count('')} of {len(reasons)}")
    right = sum(not why for _, why in told)
    adversarial = [why for case, why in told if case.adversarial]
    print(f"\n{right} of {len(told)} right ({right / len(told):.1%}, goal {GOAL:.0%})")
    print(f"adversarial: {adversarial.count('')} of {len(adversarial)}")
    for case, why in told:
        if why:
            print(f"missed: {case.name}: {why}")
    return 0 if right >= GOAL * len(told) else 1


if __name__ == "__main__":
    raise SystemExit(main())
