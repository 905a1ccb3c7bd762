"""Origins: a ledger in which resolving writes down where every value came from."""

from dataclasses import dataclass, field
from typing import Any

from agents.findings import Assumption, Evidence
from agents.wording import quoted
from traces.summary_types import Inferred


@dataclass
class Origins:
    """Filled while a request is resolved, then frozen into the job."""

    assumptions: list[Assumption] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    confidences: dict[str, float] = field(default_factory=dict)

    def stated(self, name: str, value: object, ref: str, note: str | None = None) -> None:
        """The request says so. note: what has to be said of how."""
        how = "" if note is None else f" ({note})"
        self._add(name, f"The request states {_words(name)} {quoted(str(value))}{how}.", value, "stated", ref)

    def implied(self, name: str, inferred: Inferred[Any], shown: str) -> None:
        """The trace implies it, with a confidence."""
        sure = f"confidence {inferred.confidence:.2f}: {quoted(inferred.basis, 200)}"
        claim = f"The trace implies {_words(name)} {quoted(shown)} ({sure})."
        self._add(name, claim, inferred.value, "measured", f"summary.implied.{name}")
        self.confidences[name] = inferred.confidence

    def concluded(self, name: str, shown: str, confidence: float, basis: str) -> None:
        """Several facts of the trace together imply it."""
        sure = f"confidence {confidence:.2f}: {quoted(basis, 300)}"
        claim = f"The trace implies {_words(name)} {quoted(shown, 200)} ({sure})."
        self._add(name, claim, None, "measured", "summary.implied")
        self.confidences[name] = confidence

    def assumed(self, name: str, value: object, reason: str, matters: str) -> None:
        """Nobody says so."""
        self.assumptions.append(Assumption(field=name, value=quoted(str(value), 200), reason=reason, matters=matters))

    def _add(self, name: str, claim: str, value: object, source: str, ref: str) -> None:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        self.evidence.append(
            Evidence.model_validate(
                {
                    "id": f"ev-job-{name.replace('_', '-').replace('.', '-')}",
                    "claim": claim,
                    "value": number,
                    "source": source,
                    "ref": ref,
                }
            )
        )


def _words(name: str) -> str:
    return name.rsplit(".", 1)[-1].replace("_", " ")
