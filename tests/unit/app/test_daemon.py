"""Work in daemon threads: what runs counts, whoever waits for it."""

from threading import Event

from app.daemon import count_at_work, in_daemon_thread


async def test_threads_count_until_they_end() -> None:
    go = Event()

    def search() -> None:
        go.wait()

    waiting = [in_daemon_thread(search) for _ in range(2)]
    waiting[0].cancel()
    assert (count_at_work(search), count_at_work(go.set)) == (2, 0)
    go.set()
    await waiting[1]
