"""Work that several threads do at the same time; what fails in one of them fails the test."""

import threading
from concurrent.futures import ThreadPoolExecutor


def at_once(work, count=4):
    start = threading.Barrier(count)

    def run():
        start.wait()
        work()

    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(run) for _ in range(count)]:
            future.result()
