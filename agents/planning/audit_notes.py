"""What a run tells the audit log of each node: what was resolved, found, weighed, refused and answered."""

import json
from hashlib import sha256

from agents.findings import Diagnosis, PlanResult
from agents.planning.job import Job
from agents.planning.proposal import Proposed
from agents.planning.state import Json
from projector.specs.record import Record


def of_analysis(job: Job, diagnosis: Diagnosis) -> Json:
    """The request as it was resolved, and the evidence the diagnosis rests on."""
    return {
        "job": job.model_dump(mode="json", round_trip=True),
        "bottleneck": diagnosis.bottleneck,
        "cause": diagnosis.cause,
        "evidence": [entry.id for entry in diagnosis.evidence],
    }


def of_advice(proposed: Proposed) -> Json:
    """Candidates, notes shown, whose choice stands, and everything of the model's words that was refused."""
    return {
        "considered": proposed.considered,
        "feasible": proposed.feasible,
        "candidates": list(proposed.shortlisted),
        "notes": [note.citation.chunk_id for note in proposed.notes],
        "picks": [pick.candidate for pick in proposed.picks],
        "advisor": proposed.advisor,
        "order_by": proposed.order_by,
        "fallback_reason": proposed.fallback_reason,
        "problems_of_each_turn": [list(problems) for problems in proposed.turns],
        "dropped_sentences": list(proposed.refused),
    }


def of_result(result: PlanResult) -> Json:
    """The hash of the answer and of each of its parts, so that a later answer can be compared part by part."""
    document = result.model_dump(mode="json", round_trip=True)
    return {
        "sha256": fingerprint(result),
        "parts": {name: _hashed_json(value) for name, value in document.items()},
        "versions": dict(result.provenance.versions),
        "evidence": [entry.id for entry in result.evidence],
    }


def fingerprint(record: Record) -> str:
    """Hash of a record's JSON text."""
    return sha256(record.model_dump_json(round_trip=True).encode()).hexdigest()


def _hashed_json(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
