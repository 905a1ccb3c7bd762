"""Wiring: which knowledge, which advisor, which limits stand behind a plan.

The embedded knowledge store has one owner process. The service owns the store of its data_dir while it runs.
`shardwise plan` takes that store when it is free. When a service owns it, the command keeps a second one under
data_dir/command, and when another command owns that, a temporary one: all are indices over the same notes, so the
answer is the same and everything works side by side. The first use of a store takes the time to embed the notes.
"""

import logging
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Protocol
from uuid import UUID, uuid4

from agents.advisors.llm import LlmAdvisor
from agents.advisors.protocol import Advisor
from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult
from agents.request import PlanRequest
from app.audit import AuditLog
from app.clock import utc_now
from app.notes import NoteShelf
from app.outcomes import OutcomeShelf
from app.reading import read_job
from app.schemas import Part
from app.schemas_launch import ProposalLaunch
from app.settings import Settings
from knowledge_base.embed import MiniLmEmbedder
from knowledge_base.history_files import HistoryFolder
from knowledge_base.index import SyncReport, connect_knowledge_base, open_knowledge_base, rebuild, sync
from knowledge_base.note import read_notes
from knowledge_base.retrieve import KnowledgeBase
from projector.errors import KnowledgeUnavailable, ShardwiseError, StoreBusy
from traces.summary_types import TraceSummary

_log = logging.getLogger("shardwise")


@dataclass(frozen=True)
class PlanOutcome:
    """A plan, the summary it rests on (None without a trace), and how each proposal is launched (None: not asked)."""

    result: PlanResult
    summary: TraceSummary | None
    launch: tuple[ProposalLaunch, ...] | None = None


class Planner(Protocol):
    """Turns a request and trace files into a plan. Called from worker threads, several at once."""

    def plan(
        self,
        request: PlanRequest,
        traces: Sequence[Path],
        names: Sequence[str] | None = None,
        plan_id: UUID | None = None,
    ) -> PlanOutcome:
        """The plan; raises typed errors for input that cannot be planned.

        names: what users call each trace. plan_id: under which the audit log keeps the run; None: a new one.
        """
        ...


@dataclass(frozen=True)
class TracePlanner:
    """The planning graph over trace files. `knowledge` is called when it is needed and may block while it opens.

    scratch: where archives are unpacked. show_progress: a bar on stderr while several files are read. audit: where runs
    are recorded; None: nowhere.
    """

    knowledge: Callable[[], KnowledgeBase]
    settings: Settings
    advisor: Advisor
    scratch: Path | None = None
    show_progress: bool = False
    audit: AuditLog | None = None

    def plan(
        self,
        request: PlanRequest,
        traces: Sequence[Path],
        names: Sequence[str] | None = None,
        plan_id: UUID | None = None,
    ) -> PlanOutcome:
        """Read the traces, run the graph, then write the launch configurations of what it proposes."""
        from app.launch import launch_of

        summary = None
        if traces:
            summary = read_job(
                traces, self.settings, names=names, scratch=self.scratch, show_progress=self.show_progress
            )
        result = self._result(request, summary, plan_id)
        return PlanOutcome(result, summary, launch_of(request, summary, result))

    def _result(self, request: PlanRequest, summary: TraceSummary | None, plan_id: UUID | None) -> PlanResult:
        """The graph's answer, recorded where there is an audit log."""
        from agents.planning.graph import run_plan

        knowledge, redact = self.knowledge(), self.settings.llm_redact
        if self.audit is None:
            return run_plan(request, summary, knowledge=knowledge, advisor=self.advisor, redact=redact)
        from app.recorded import recorded_plan

        return recorded_plan(
            self.audit.run(plan_id or uuid4()),
            request,
            summary,
            knowledge=knowledge,
            advisor=self.advisor,
            llm_model=self.settings.llm_model,
            redact=redact,
        )


def advisor_of(settings: Settings) -> Advisor:
    """The language model that is configured, else the rules. A model is imported and reached when it is first asked."""
    if settings.llm_model is None:
        return RulesAdvisor()
    return LlmAdvisor(
        settings.llm_model,
        api_base=settings.llm_api_base,
        api_key=settings.llm_api_key,
        timeout_s=settings.llm_timeout_s,
    )


def audit_of(settings: Settings, clock: Callable[[], datetime] = utc_now) -> AuditLog | None:
    """The audit log of the settings; None where it is switched off."""
    if not settings.audit:
        return None
    secrets = [settings.llm_api_key] if settings.llm_api_key is not None else []
    return AuditLog(settings.audit_folder, clock, sync=settings.audit_sync, secrets=secrets)


def close_advisor(advisor: Advisor) -> None:
    """Give up what an advisor holds open, where it holds anything."""
    close = getattr(advisor, "close", None)
    if close is not None:
        close()


def _today() -> date:
    """The day by which notes may be out of date."""
    return datetime.now(UTC).date()


class KnowledgeOwner:
    """The knowledge base of one process: opened once, by whoever needs it first; a failed opening is tried again."""

    def __init__(self, settings: Settings, store_dir: Path | None = None) -> None:
        """`store_dir`: where the embedded store lies; None takes that of the settings."""
        self.shelf = NoteShelf(settings.notes_dir)
        self.outcomes = OutcomeShelf(HistoryFolder(settings.history_dir))
        self._store_dir = store_dir or settings.knowledge_dir
        self._settings = settings
        self._embedder = MiniLmEmbedder()
        self._lock = threading.Lock()
        self._indexing = threading.Lock()
        self._base: KnowledgeBase | None = None
        self._error: str | None = None
        self._held = ""
        self._closed = False

    def get(self) -> KnowledgeBase:
        """The open knowledge base; StoreBusy, KnowledgeUnavailable."""
        with self._lock:
            if self._closed:
                raise KnowledgeUnavailable("the knowledge store is closed: the service is stopping")
            if self._base is None:
                try:
                    self._base = self._open()
                    self._error = None
                except ShardwiseError as error:
                    self._hide_data_dir(error)
                    self._error = error.message
                    raise
            return self._base

    def sync(self) -> SyncReport:
        """Bring the store in line with the notes as they are now. Errors as `get`."""
        base = self.get()
        with self._indexing:
            return self._counted(sync(base.store, self._embedder, read_notes(*self.shelf.folders())))

    def rebuild(self) -> SyncReport:
        """Empty the store and embed every note again. Errors as `get`."""
        base = self.get()
        with self._indexing:
            return self._counted(rebuild(base.store, self._embedder, read_notes(*self.shelf.folders())))

    def warm(self) -> None:
        """Open the store, load the embedder, import the planning graph: the first plan need not wait for them."""
        import agents.planning.graph  # noqa: F401

        self.get()
        self._embedder.load()

    def close(self) -> None:
        """Give the store back, for good."""
        with self._lock:
            self._closed = True
            if self._base is not None:
                self._base.close()
                self._base = None

    def parts(self) -> tuple[Part, Part, Part]:
        """(knowledge store, embedder, history) as /readyz shows them, with what the two collections hold."""
        waiting = Part(state="starting") if self._settings.warm_embedder else Part(state="on_demand")
        failed = Part(state="failed", detail=self._error) if self._error is not None else None
        store = Part(state="ready", detail=self._held) if self._base is not None else failed or waiting
        embedder = Part(state="ready") if self._embedder.loaded else failed or waiting
        return store, embedder, self._history_part()

    def _history_part(self) -> Part:
        try:
            cases = self.outcomes.history().cases
        except ShardwiseError as error:
            return Part(state="failed", detail=error.message)
        recorded = sum(case.origin == "user" for case in cases)
        return Part(state="ready", detail=f"{len(cases) - recorded} cases bundled, {recorded} recorded")

    def _counted(self, report: SyncReport) -> SyncReport:
        self._held = f"{report.notes} notes, {report.chunks} passages"
        return report

    def _hide_data_dir(self, error: ShardwiseError) -> None:
        """Clients of the service are told what is wrong, and no path of this machine."""
        folder = str(self._settings.data_dir.resolve())
        error.message = error.message.replace(folder, "data_dir")
        error.hint = error.hint.replace(folder, "data_dir")

    def _open(self) -> KnowledgeBase:
        host, port, folders = self._settings.chroma_host, self._settings.chroma_port, self.shelf.folders()
        history = self.outcomes.history
        if host is not None:
            base, report = connect_knowledge_base(
                host, port, self._embedder, folders=folders, history=history, today=_today
            )
        else:
            base, report = open_knowledge_base(
                self._store_dir, self._embedder, folders=folders, history=history, today=_today
            )
        self._counted(report)
        if report.rebuilt_because is not None:
            _log.warning("knowledge store rebuilt: %s", report.rebuilt_because)
        _log.info("knowledge store: %d notes, %d chunks, %d embedded now", report.notes, report.chunks, report.embedded)
        return base


@contextmanager
def command_knowledge(settings: Settings, say: Callable[[str], None]) -> Iterator[Callable[[], KnowledgeOwner]]:
    """The knowledge of one command, opened when it is first called for.

    `say` tells the user which store is busy and which one is taken instead.
    """
    with tempfile.TemporaryDirectory(prefix="shardwise-") as temporary, ExitStack() as stack:
        stores = (settings.knowledge_dir, settings.data_dir / "command" / "knowledge", Path(temporary) / "knowledge")

        @cache
        def knowledge() -> KnowledgeOwner:
            for store_dir in stores[:-1]:
                try:
                    return opened(store_dir)
                except StoreBusy as error:
                    say(f"{error.message}; this command keeps an index of its own")
            return opened(stores[-1])

        def opened(store_dir: Path) -> KnowledgeOwner:
            owner = KnowledgeOwner(settings, store_dir)
            stack.callback(owner.close)
            owner.get()
            return owner

        yield knowledge


@contextmanager
def command_planner(settings: Settings, say: Callable[[str], None]) -> Iterator[Planner]:
    """A planner for one command; `say` as in `command_knowledge`."""
    with command_knowledge(settings, say) as knowledge:
        advisor = advisor_of(settings)
        try:
            yield TracePlanner(
                lambda: knowledge().get(), settings, advisor, show_progress=True, audit=audit_of(settings)
            )
        finally:
            close_advisor(advisor)
