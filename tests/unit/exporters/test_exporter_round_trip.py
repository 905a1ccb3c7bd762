"""Plan -> arguments -> plan: what was not refused comes back, for every legal plan."""

import shlex

import pytest
import yaml
from exporter_examples import serving_jobs, training_jobs
from hypothesis import given, settings

from agents.exporters import exporters
from agents.exporters.exporter import Known
from agents.exporters.render import shell, yaml_file
from projector.specs.plan_batch import FIELDS

EACH = pytest.mark.parametrize("exporter", exporters(), ids=lambda exporter: exporter.framework)


def jobs_of(exporter):
    return training_jobs() if "training" in exporter.phases else serving_jobs()


def check_round_trip(exporter, job):
    config = exporter.export(job)
    assert exporter.export(job) == config
    if not config.command:
        return
    parsed = exporter.parse(config.command, Known(config.devices, job.architecture, job.hardware))
    refused = {refusal.field for refusal in config.refused}
    expected = {field: getattr(job.plan, field) for field in FIELDS if field not in refused}
    assert {field: getattr(parsed.plan, field) for field in expected} == expected


def check_accounts(exporter, job):
    config = exporter.export(job)
    outcomes = [each.field for each in (*config.stated, *config.refused)]
    assert sorted(outcomes) == sorted(FIELDS)
    names = {setting.name for setting in config.settings}
    for statement in config.stated:
        assert set(statement.by) <= names
        assert bool(statement.by) == (statement.how == "exported")
        assert statement.by or statement.note
    for refusal in config.refused:
        assert refusal.reason
        assert refusal.instead
        assert refusal.value == str(getattr(job.plan, refusal.field))


def check_text(exporter, job):
    config = exporter.export(job)
    lines = [line for line in shell(config).splitlines() if not line.startswith("#")]
    command = shlex.split("\n".join(lines).replace("\\\n", " "))
    assert tuple(command[len(command) - len(config.command) :]) == config.command
    if config.config_file is not None:
        values = yaml.safe_load(yaml_file(config))
        assert list(values) == [setting.name for setting in config.config_file.settings]


@EACH
def test_what_is_not_refused_comes_back(exporter):
    @given(jobs_of(exporter))
    @settings(max_examples=150, deadline=None)
    def run(job):
        check_round_trip(exporter, job)

    run()


@EACH
def test_every_field_has_one_outcome_with_its_reason(exporter):
    @given(jobs_of(exporter))
    @settings(max_examples=60, deadline=None)
    def run(job):
        check_accounts(exporter, job)

    run()


@EACH
def test_text_reads_back_as_the_command(exporter):
    @given(jobs_of(exporter))
    @settings(max_examples=40, deadline=None)
    def run(job):
        check_text(exporter, job)

    run()
