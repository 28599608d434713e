"""The command line of `ipcmark-fleet`."""

import argparse
import hashlib
import shlex
import shutil
import sys
from pathlib import Path

from ipcmark.fleet.dataset import Dataset, Order
from ipcmark.invalid import Invalid


def main() -> None:
    """Does what was typed. Exit status: 0 all was done, 1 something failed, 2 bad input, 130 interrupted."""
    arguments = parser().parse_args()
    try:
        sys.exit(arguments.call(arguments))
    except Invalid as error:
        print(f"ipcmark-fleet: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("ipcmark-fleet: interrupted; the same command goes on where it was", file=sys.stderr)
        sys.exit(130)


def parser() -> argparse.ArgumentParser:
    """What can be typed."""
    top = argparse.ArgumentParser(prog="ipcmark-fleet", description="Measure on many hosts, and say which differ")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="measure a suite on every host of a cluster")
    run.set_defaults(call=measure)
    run.add_argument("suite", metavar="SUITE", help="name of a suite, or path of a suite file")
    run.add_argument(
        "--cluster",
        default="local",
        help="local, ssh:FILE, slurm, kubernetes, or a scheduler's address [local]",
    )
    run.add_argument("--output", type=Path, required=True, metavar="DIRECTORY", help="where the results are kept")
    run.add_argument("--binary", type=Path, help="the ipcmark that hosts run [the one on the PATH]")
    run.add_argument("--runs", type=positive, default=3, help="how many runs each host makes [3]")
    run.add_argument("--workers", type=positive, help="how many workers to start or wait for")
    run.add_argument("--python", help="the Python of hosts that are reached by ssh [the path of this one]")
    run.add_argument("--timeout", type=positive, default=900, metavar="SECONDS", help="what a run may take [900]")
    run.add_argument(
        "--lost-after",
        type=positive,
        default=60,
        metavar="SECONDS",
        help="when a host without workers is lost [60]",
    )
    run.add_argument(
        "--options",
        type=shlex.split,
        default=[],
        metavar="OPTIONS",
        help="for ipcmark run: --options='--time 20s'",
    )
    run.add_argument(
        "--peer-via",
        metavar="COMMAND",
        help="measure between pairs of hosts: how a host reaches the server's, as in 'ssh {host}'",
    )
    report = commands.add_parser("report", help="one page: which hosts and kernels differ, and by how much")
    report.set_defaults(call=tell)
    report.add_argument("directory", type=Path, metavar="DIRECTORY", help="what run was given as --output")
    report.add_argument("--html", type=Path, required=True, metavar="PAGE", help="where the page is written")
    report.add_argument("--suite", help="which suite, where the data set has several")
    return top


def positive(text: str) -> int:
    """A whole number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def measure(arguments: argparse.Namespace) -> int:
    """The command `run`."""
    # Dask takes a second to import, which a report need not wait for.
    from ipcmark.fleet.clusters import connected  # noqa: PLC0415
    from ipcmark.fleet.run import Fleet, Limits  # noqa: PLC0415

    binary = program(arguments.binary)
    dataset = Dataset(arguments.output)
    order = Order(
        *suite(arguments.suite), hashlib.sha256(binary.read_bytes()).hexdigest(), arguments.options, arguments.peer_via
    )
    limits = Limits(run_s=arguments.timeout, lost_s=arguments.lost_after)
    cluster = (arguments.cluster, arguments.workers, arguments.python)
    with dataset.held_for(order), connected(*cluster) as client:
        problems = Fleet(client, dataset, order, binary, arguments.runs, limits, say, arguments.peer_via).run()
    for problem in problems:
        print(f"ipcmark-fleet: not done: {problem}", file=sys.stderr)
    return 1 if problems else 0


def tell(arguments: argparse.Namespace) -> int:
    """The command `report`."""
    from ipcmark.fleet.report import page  # noqa: PLC0415

    command = shlex.join(["ipcmark-fleet", *sys.argv[1:]])
    arguments.html.write_text(page(Dataset(arguments.directory), arguments.suite, command))
    print(arguments.html)
    return 0


def say(text: str) -> None:
    """Progress, a line for each thing that happens."""
    print(text, file=sys.stderr, flush=True)


def program(given: Path | None) -> Path:
    """The ipcmark to send."""
    found = given or (Path(path) if (path := shutil.which("ipcmark")) else None)
    if found is None or not found.is_file():
        problem = f"{found} is not a file" if found else "there is no ipcmark on the PATH"
        raise Invalid(problem, "give the program that hosts are to run with --binary")
    return found


def suite(given: str) -> tuple[str, str | None]:
    """The suite's name, and its text where it is a file."""
    if "/" not in given and not given.endswith(".toml"):
        return given, None
    try:
        return Path(given).stem, Path(given).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{given} cannot be read: {error}", "name a suite, or a suite file") from None


if __name__ == "__main__":
    main()
