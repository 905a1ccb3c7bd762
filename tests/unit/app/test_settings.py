"""Settings: one way to configure, and nothing unknown is let through. What one does is tested where it acts."""

from pathlib import Path

import pytest

from app.errors import InvalidSettings
from app.settings import Settings, load_settings
from projector.errors import UnknownName


@pytest.fixture(autouse=True)
def no_settings(monkeypatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"SHARDWISE_{name.upper()}", raising=False)


def test_variables_are_read_and_arguments_win_over_them(monkeypatch) -> None:
    monkeypatch.setenv("SHARDWISE_PORT", "9000")
    monkeypatch.setenv("SHARDWISE_HOST", "0.0.0.0")  # noqa: S104
    settings = load_settings(port=9001, host=None)
    assert (settings.port, settings.host) == (9001, "0.0.0.0")  # noqa: S104


def test_an_unknown_variable_is_an_error_with_the_nearest_name(monkeypatch) -> None:
    monkeypatch.setenv("SHARDWISE_PROT", "9000")
    with pytest.raises(UnknownName) as error:
        load_settings()
    assert error.value.nearest[0] == "port"


def test_the_folder_of_the_sample_checks_is_no_setting_and_no_error(monkeypatch) -> None:
    monkeypatch.setenv("SHARDWISE_SHARED", "../shared")
    load_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [("port", 0), ("workers", 0), ("max_upload_bytes", 0), ("max_wait_s", -1), ("database_url", "mysql://x")],
)
def test_a_value_out_of_range_is_named(name, value) -> None:
    with pytest.raises(InvalidSettings, match="database_url" if name == "database_url" else name):
        load_settings(**{name: value})


def test_the_database_is_in_the_data_folder_unless_it_is_named(tmp_path: Path) -> None:
    assert load_settings(data_dir=tmp_path).database == f"sqlite+aiosqlite:///{tmp_path / 'shardwise.db'}"
    url = "postgresql+asyncpg://db/shardwise"
    assert load_settings(data_dir=tmp_path, database_url=url).database == url


def test_limits_reach_the_trace_readers() -> None:
    from app.reading import limits_of

    limits = limits_of(load_settings(max_upload_bytes=1, max_decompressed_bytes=2, max_events=3))
    assert (limits.max_compressed_bytes, limits.max_decompressed_bytes, limits.max_events) == (1, 2, 3)


def test_a_chroma_server_is_used_where_one_is_named(monkeypatch) -> None:
    from app import wiring

    asked = []

    def connect(host: str, port: int, embedder: object, **_: object):
        asked.append((host, port))
        raise UnknownName("host", host, ())

    monkeypatch.setattr(wiring, "connect_knowledge_base", connect)
    with pytest.raises(UnknownName):
        wiring.KnowledgeOwner(load_settings(chroma_host="chroma", chroma_port=8001)).get()
    assert asked == [("chroma", 8001)]
