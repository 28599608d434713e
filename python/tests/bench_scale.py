"""What a report of 1,000 hosts and 1,000 cases takes, and what it finds: `python tests/bench_scale.py [HOSTS [CASES]]`.

It makes the fleet, has `ipcmark-fleet report` make its page in a process of its own, opens it and asks each of its
questions. It prints figures and asserts nothing; `test_statistics.py` asserts what the report must find.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Set as AbstractSet
from pathlib import Path

import fleet_maker
from ipcmark.fleet.dataset import Dataset
from ipcmark.fleet.statistics import analyse, table_of
from test_statistics import found
from viewing import browser

QUESTIONS = {
    "one host": "() => chooseHost(rowsOfMap[rowsOfMap.length >> 1])",
    "all cases of it": "() => document.querySelector('#of-host .more').click()",
    "one case": "() => chooseCase(cases.length >> 1)",
    "all hosts of it": "() => document.querySelector('#of-case .more').click()",
    "cases sorted by what varies": "() => document.querySelectorAll('#cases thead button')[3].click()",
    "all cases": "() => document.querySelector('#cases .more').click()",
    "the map in the other colours": "() => document.querySelector('#theme').click()",
}
# Until the browser has drawn what the question changed.
DRAWN = """async (ask) => {
    const began = performance.now();
    eval(ask)();
    document.body.offsetHeight;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - began;
}"""


def main(hosts: int, cases: int) -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as directory:
        data, html = Path(directory, "data"), Path(directory, "page.html")
        fleet = fleet_maker.make(hosts, cases)
        dataset = fleet_maker.write(fleet, data)
        print(f"{hosts} hosts, {cases} cases, {fleet.log_ns.shape[1]} runs of each host")
        began = time.perf_counter()
        command = [sys.executable, "-m", "ipcmark.fleet.cli", "report", str(data), "--html", str(html)]
        subprocess.run(command, check=True)
        took = time.perf_counter() - began
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 << 20)
        print(f"report: {took:.1f} s, at most {memory:.2f} GiB of memory, page of {html.stat().st_size / 1e6:.1f} MB")
        tell_truth(fleet, dataset)
        open_page(html)


def tell_truth(fleet: fleet_maker.MadeFleet, dataset: Dataset) -> None:
    """Prints how many of the differences that were put in are found, and how many others."""
    analysis = analyse(table_of(dataset.scan("cases").collect(), dataset.hosts()))
    # The table has the cases in the order of their names.
    fleet.cases = analysis.table.cases
    hosts, cells, on_kernel = found(fleet, analysis)
    compare("hosts", fleet.slow_hosts, hosts)
    compare("cells", fleet.slow_cells, cells)
    compare("cases of the kernel", fleet.slow_on_kernel, on_kernel)


def compare(what: str, truth: AbstractSet[object], told: AbstractSet[object]) -> None:
    """Prints how many of `truth` were told, and how many of those told are false."""
    false = len(told - truth)
    share = false / max(1, len(told))
    print(f"{what}: {len(told & truth)} of {len(truth)} found; {false} of {len(told)} are false ({share:.2%})")


def open_page(html: Path) -> None:
    """Prints what the page takes to open and to answer."""
    with browser() as opened:
        page = opened.new_page(viewport={"width": 1300, "height": 900})
        began = time.perf_counter()
        page.goto(html.as_uri())
        print(f"page: opened in {time.perf_counter() - began:.2f} s")
        for question, ask in QUESTIONS.items():
            print(f"page: {question}: {page.evaluate(DRAWN, ask) / 1000:.2f} s")


if __name__ == "__main__":
    main(*[int(word) for word in [*sys.argv[1:], *["1000", "1000"][len(sys.argv) - 1 :]]])
