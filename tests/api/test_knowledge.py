"""The knowledge base over HTTP and on the command line: search, read, add; whatever a note holds stays text."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from filelock import FileLock
from test_pages import Tags

from app import wiring
from app.cli import main
from app.notes import NoteShelf
from knowledge_base.embed import MiniLmEmbedder

MARKDOWN = {"Content-Type": "text/markdown"}
NOTE = """\
---
id: {id}
title: Wider doors <i>now</i>
levers: [tensor_parallelism]
causes: [exposed_tp]
phases: [training, serving]
hardware: [gpu]
variables:
  people: {{value: 90, unit: people, meaning: people in the hall}}
  doors: {{value: 3, unit: doors, meaning: doors of the hall}}
worked:
  - {{name: queue, expression: people / doors, value: {queue}, unit: people, meaning: people at one door}}
inequality: queue < people
holds: true
sources:
  - {{title: A book on doors, url: "https://example.org/doors", year: 2020}}
---
## Claim
{claim}

## When it helps
Many people wait.

## When it hurts
Doors cost wall.

## The inequality that decides
Open doors while `queue < people`.

## Worked number
90 people, 3 doors: 30 at each.
"""
HOSTILE = """Halls <script>alert(1)</script> {{7*7}} ![pixel](https://evil.example/p.png)
[run](javascript:alert(1)) [data](data:text/html;base64,PHA+) [here](/v1/plans) [book](https://example.org/book)"""


def note(note_id: str = "wider-doors", claim: str = "Halls empty through all doors.", queue: int = 30) -> str:
    return NOTE.format(id=note_id, claim=claim, queue=queue)


@pytest.fixture(scope="module")
def embedder() -> MiniLmEmbedder:
    return MiniLmEmbedder()


@pytest.fixture
async def client(serve, embedder, monkeypatch, tmp_path) -> AsyncIterator[httpx.AsyncClient]:
    """A service over the real notes of one topic, so that opening the store stays short."""
    few = tmp_path / "few"
    few.mkdir()
    bundled = Path(wiring.__file__).parents[1] / "knowledge_base" / "notes"
    for name in ("fsdp-full-sharding", "small-collectives-latency", "kv-cache-and-decode-batching"):
        (few / f"{name}.md").write_text((bundled / f"{name}.md").read_text())
    monkeypatch.setattr(wiring, "MiniLmEmbedder", lambda: embedder)
    monkeypatch.setattr(wiring, "NoteShelf", lambda folder: NoteShelf(folder, bundled_folder=few))
    async with serve() as client:
        yield client


async def test_search_finds_passages_with_sources_and_links(client) -> None:
    asked = {"query": "weight gathers stand exposed", "causes": ["exposed_dp", "hbm_capacity"], "phase": "training"}
    answer = (await client.get("/v1/knowledge", params=asked)).json()
    first = answer["notes"][0]
    assert first["note_id"] == "fsdp-full-sharding"
    assert first["sources"]
    assert (await client.get(first["links"]["self"])).json()["note"]["id"] == "fsdp-full-sharding"
    assert (await client.get(first["links"]["page"])).status_code == 200


async def test_search_without_a_phase_covers_both(client) -> None:
    found = (await client.get("/v1/knowledge?query=tokens&k=50")).json()["notes"]
    assert {"fsdp-full-sharding", "kv-cache-and-decode-batching"} <= {note["note_id"] for note in found}
    similarities = [note["similarity"] for note in found]
    assert similarities == sorted(similarities, reverse=True)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("", "query"),
        ("query=x&phase=trainin", "training"),
        ("query=x&causes=exposed_dpp", "exposed_dp"),
        ("query=x&levers=fdsp", "fsdp"),
        ("query=x&hardware_kind=cpu", "hardware kind"),
        ("query=x&k=0", "k"),
        ("query=x&k=many", "k"),
        ("query=x&cause=exposed_dp", "causes"),
        ("query=%20", "empty"),
    ],
)
async def test_a_wrong_question_is_422_with_the_nearest_name(client, query, told) -> None:
    answer = await client.get(f"/v1/knowledge?{query}")
    assert answer.status_code == 422
    assert told in answer.text


async def test_an_added_note_is_found_at_once_and_replaced_by_its_id(client, tmp_path) -> None:
    added = await client.post("/v1/knowledge", content=note(), headers=MARKDOWN)
    assert (added.status_code, added.json()["created"]) == (201, True)
    assert added.json()["index"]["embedded"] == 5
    search = "/v1/knowledge?query=halls%20and%20doors&causes=exposed_tp"
    assert (await client.get(search)).json()["notes"][0]["note_id"] == "wider-doors"
    assert (await client.get(added.headers["Location"])).json()["origin"] == "user"
    again = await client.post("/v1/knowledge", content=note(claim="Doors open outwards."), headers=MARKDOWN)
    assert (again.status_code, again.json()["created"], again.json()["index"]["embedded"]) == (200, False, 1)
    assert [path.name for path in (tmp_path / "data" / "notes").iterdir()] == ["wider-doors.md"]


@pytest.mark.parametrize(
    ("text", "headers", "status", "told"),
    [
        (note(queue=31), MARKDOWN, 422, "its formula gives 30"),
        (note("fsdp-full-sharding"), MARKDOWN, 422, "bundled"),
        (note("../../etc/passwd"), MARKDOWN, 422, "id"),
        (note().replace("exposed_tp", "exposed_pt"), MARKDOWN, 422, "exposed_tp"),
        ("no front matter", MARKDOWN, 422, "front matter"),
        (note(claim="x" * 33_000), MARKDOWN, 413, "32000"),
        (b"\xff\xfe", MARKDOWN, 400, "UTF-8"),
        (note(), {"Content-Type": "text/plain"}, 415, "text/markdown"),
        (note(), {"Content-Type": "text/markdown", "Content-Encoding": "gzip"}, 415, "text/markdown"),
    ],
)
async def test_a_note_that_is_refused_leaves_nothing(client, tmp_path, text, headers, status, told) -> None:
    answer = await client.post("/v1/knowledge", content=text, headers=headers)
    assert answer.status_code == status
    assert told in answer.text
    assert list(tmp_path.rglob("*doors*")) == []


async def test_a_note_is_taken_back_when_it_cannot_be_indexed(client, tmp_path) -> None:
    (tmp_path / "data").mkdir(exist_ok=True)
    with FileLock(tmp_path / "data" / "knowledge.lock"):
        answer = await client.post("/v1/knowledge", content=note(), headers=MARKDOWN)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_busy")
    assert list((tmp_path / "data" / "notes").iterdir()) == []


async def test_a_stored_note_that_was_broken_by_hand_is_named(client, tmp_path) -> None:
    folder = tmp_path / "data" / "notes"
    folder.mkdir(parents=True)
    (folder / "mine.md").write_text("not a note")
    for path in ("/v1/knowledge?query=x", "/v1/knowledge/mine", "/knowledge/mine"):
        answer = await client.get(path)
        assert answer.status_code == 503
        assert "mine.md" in answer.text


@pytest.mark.parametrize("note_id", ["fsdp-full-shardin", "..%2F..%2Fpyproject", "fsdp-full-sharding.md"])
async def test_an_unknown_note_is_404(client, note_id) -> None:
    answer = await client.get(f"/v1/knowledge/{note_id}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    page = await client.get(f"/knowledge/{note_id}")
    assert page.status_code == 404


async def test_a_misspelt_note_has_its_neighbours(client) -> None:
    assert (await client.get("/v1/knowledge/fsdp-ful-sharding")).json()["nearest"][0] == "fsdp-full-sharding"


async def test_the_page_of_a_note_shows_its_numbers(client) -> None:
    page = await client.get("/knowledge/fsdp-full-sharding")
    text = " ".join(Tags(page.text).text.split())
    for shown in ("When it hurts", "tokens_to_hide", "2,163", "Rajbhandari et al., ZeRO", "a note of the bundled"):
        assert shown in text


async def test_whatever_a_note_holds_its_page_is_inert(client) -> None:
    await client.post("/v1/knowledge", content=note(claim=HOSTILE), headers=MARKDOWN)
    answer = await client.get("/knowledge/wider-doors")
    page = Tags(answer.text)
    assert {tag for tag, _ in page.tags} & {"script", "img", "i", "iframe", "link", "form"} == set()
    links = [attributes for tag, attributes in page.tags if tag == "a"]
    outside = [link for link in links if link["href"] not in ("/", "/v1/knowledge/wider-doors")]
    # an image is only a link to it: nothing is loaded unless a reader follows it
    web = {"https://evil.example/p.png", "https://example.org/book", "https://example.org/doors"}
    assert {link["href"] for link in outside} == web
    assert all("noopener" in link["rel"] for link in outside)
    for kept in ("<script>alert(1)</script>", "{{7*7}}", "javascript:alert(1)", "<i>now</i>"):
        assert kept in page.text
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_the_command_adds_searches_and_rebuilds(monkeypatch, capsys, tmp_path, embedder) -> None:
    few = tmp_path / "few"
    few.mkdir()
    monkeypatch.setenv("SHARDWISE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(wiring, "MiniLmEmbedder", lambda: embedder)
    monkeypatch.setattr(wiring, "NoteShelf", lambda folder: NoteShelf(folder, bundled_folder=few))
    file = tmp_path / "a.md"
    file.write_text(note())
    assert main(["knowledge", "add", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["created"] is True
    assert main(["knowledge", "search", "wide", "doors", "--cause", "exposed_tp"]) == 0
    assert "[wider-doors, similarity" in capsys.readouterr().out
    assert main(["knowledge", "rebuild", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["notes"], report["embedded"], report["rebuilt_because"]) == (1, 5, "it was asked for")
    with FileLock(tmp_path / "data" / "knowledge.lock"):
        file.write_text(note("narrow-doors"))
        assert main(["knowledge", "add", str(file)]) == 0
        assert "has not read the note yet" in " ".join(capsys.readouterr().out.split())
        assert main(["knowledge", "rebuild"]) == 1
        assert "another process owns" in capsys.readouterr().err
        assert main(["knowledge", "search", "doors", "-k", "9", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["notes"]
    assert {each["note_id"] for each in found} == {"wider-doors", "narrow-doors"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["serch"], "search"),
        (["add", "missing.md"], "no file"),
        (["search", "x", "--phase", "trainin"], "training"),
    ],
)
def test_a_wrong_command_is_exit_2(monkeypatch, capsys, tmp_path, embedder, arguments, told) -> None:
    few = tmp_path / "few"
    few.mkdir()
    monkeypatch.setenv("SHARDWISE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(wiring, "MiniLmEmbedder", lambda: embedder)
    monkeypatch.setattr(wiring, "NoteShelf", lambda folder: NoteShelf(folder, bundled_folder=few))
    assert main(["knowledge", *arguments]) == 2
    assert told in capsys.readouterr().err
