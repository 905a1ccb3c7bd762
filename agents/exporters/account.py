"""Account: what becomes of every plan field while a configuration is written."""

from collections.abc import Iterable

from agents.exporters.exporter import Placeholder, Refusal, Setting, Statement
from projector.specs.plan import ParallelismPlan, Phase
from projector.specs.plan_batch import FIELDS
from projector.specs.record import Record

Value = bool | int | float | str | tuple[str, ...] | None


class Closed(Record):
    """A closed account, ready for a LaunchConfig."""

    settings: tuple[Setting, ...]
    stated: tuple[Statement, ...]
    refused: tuple[Refusal, ...]
    placeholders: tuple[Placeholder, ...]
    notes: tuple[str, ...]


class Account:
    """Collects settings in order and one outcome a plan field."""

    def __init__(self, plan: ParallelismPlan) -> None:
        self.plan = plan
        self._settings: list[Setting] = []
        self._outcomes: dict[str, Statement | Refusal] = {}
        self._placeholders: dict[str, str] = {}
        self._notes: list[str] = []

    def add(self, name: str, value: Value = None) -> None:
        """An argument that belongs to no single plan field."""
        self._settings.append(Setting(name=name, value=value))

    def say(self, field: str, *settings: tuple[str, Value], note: str = "") -> None:
        """The field is exported by these arguments."""
        for name, value in settings:
            self.add(name, value)
        self.said(field, [name for name, _ in settings], note)

    def said(self, field: str, names: Iterable[str], note: str = "") -> None:
        """The field is exported by arguments that are already there."""
        self._settle(
            Statement(field=field, value=self._text(field), how="exported", by=tuple(dict.fromkeys(names)), note=note)
        )

    def imply(self, field: str, note: str) -> None:
        """The framework does what the field says unasked."""
        self._settle(Statement(field=field, value=self._text(field), how="implied", note=note))

    def refuse(self, field: str, reason: str, *, instead: str, inert: bool = False) -> None:
        """The framework cannot say the field."""
        self._settle(Refusal(field=field, value=self._text(field), reason=reason, instead=instead, inert=inert))

    def refuse_rest(self, reason: str, *, instead: str) -> None:
        """Refuse every field without an outcome."""
        for field in FIELDS:
            if field not in self._outcomes:
                self.refuse(field, reason, instead=instead)

    def foreign(self, fields: Iterable[str], phase: Phase) -> None:
        """Fields of the other phase: implied at their default, refused elsewhere."""
        for field in fields:
            if getattr(self.plan, field) == ParallelismPlan.model_fields[field].default:
                self.imply(field, f"means nothing outside {phase}; at its default")
            else:
                self.refuse(
                    field, f"a {phase} field set in a {self.plan.phase} plan", instead="nothing uses it", inert=True
                )

    def no_experts(self) -> None:
        """ep and etp of a dense model."""
        for field in ("ep", "etp"):
            if getattr(self.plan, field) == 1:
                self.imply(field, "a dense model has no experts")
            else:
                self.refuse(field, "a dense model has no experts", instead="1", inert=True)

    def note(self, text: str) -> None:
        """A sentence the user has to know."""
        if text not in self._notes:
            self._notes.append(text)

    def fill(self, token: str, meaning: str) -> str:
        """A placeholder the user has to replace; returns it as it stands in the command."""
        name = f"<{token}>"
        self._placeholders[name] = meaning
        return name

    def close(self) -> Closed:
        """The finished account. Every plan field has its outcome, in the order of the plan."""
        missing = [field for field in FIELDS if field not in self._outcomes]
        assert not missing, f"no outcome for {missing}"
        ordered = [self._outcomes[field] for field in FIELDS]
        return Closed(
            settings=tuple(self._settings),
            stated=tuple(each for each in ordered if isinstance(each, Statement)),
            refused=tuple(each for each in ordered if isinstance(each, Refusal)),
            placeholders=tuple(Placeholder(token=token, meaning=text) for token, text in self._placeholders.items()),
            notes=tuple(self._notes),
        )

    def _settle(self, outcome: Statement | Refusal) -> None:
        assert outcome.field not in self._outcomes, f"two outcomes for {outcome.field}"
        self._outcomes[outcome.field] = outcome

    def _text(self, field: str) -> str:
        return str(getattr(self.plan, field))
