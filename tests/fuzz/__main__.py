"""Coverage-guided fuzzing of all readers with atheris (libFuzzer), each in a process of its own.

    python -m fuzz [--seconds 60] [--jobs 1] [TARGET ...]

The seconds are divided among the targets, of which so many run side by side. A process may take as
much memory as it has at its start and what its target states. A file that takes longer than 300 s,
or more memory, is a failure, and so is any exception that is not Hamflow's. Such a file is kept in
build/fuzz/crashes, and what was learned in build/fuzz/corpus.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build" / "fuzz"
_TIMEOUT = 300  # seconds for a file; by the clock, on machines that may be busy


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    if options.child:
        _fuzz(options.targets[0], options.seconds)
        return 0

    from fuzz.targets import TARGETS  # noqa: PLC0415  (the child imports them instrumented)

    names = options.targets or list(TARGETS)
    each = max(1, options.seconds * options.jobs // len(names))
    total, failed = 0, []
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = pool.map(lambda name: _run(name, each), names)
        for name, (count, good, report) in zip(names, runs, strict=True):
            total += count
            print(f"{name:10} {count:10,} executions{'' if good else '  FAILED'}", flush=True)
            if not good:
                failed.append(name)
                print(report)
    print(f"{total:,} executions, {len(failed)} of {len(names)} readers failed")
    return 1 if failed else 0


def _run(name: str, seconds: int) -> tuple[int, bool, str]:
    """Fuzz a reader; return the number of executions, whether all was well, and the end of it."""
    command = [sys.executable, "-m", "fuzz", "--child", "--seconds", str(seconds), name]
    run = subprocess.run(
        command,
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"HAMFLOW_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        check=False,
    )
    output = run.stdout.decode(errors="replace")
    counts = re.findall(r"number_of_executed_units: (\d+)", output)
    return int(counts[-1]) if counts else 0, run.returncode == 0, output[-4000:]


def _fuzz(name: str, seconds: int) -> None:
    import atheris  # noqa: PLC0415  (the extra "fuzz")

    with atheris.instrument_imports(include=["hamflow"]):
        from fuzz.targets import LONGEST, TARGETS, check  # noqa: PLC0415

    target = TARGETS[name]
    corpus = BUILD / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    crashes = BUILD / "crashes"
    crashes.mkdir(exist_ok=True)
    for data in target.seeds():
        (corpus / sha256(data).hexdigest()[:16]).write_bytes(data)
    with tempfile.TemporaryDirectory(dir=_memory_disk()) as folder:
        path = Path(folder, f"fuzzed{target.suffix}")
        for file in sorted(corpus.iterdir())[:1]:
            check(target, path, file.read_bytes())  # what is imported late is in memory then
        _limit_memory(target.memory)
        atheris.Setup(
            [
                name,
                f"-max_total_time={seconds}",
                f"-max_len={LONGEST}",
                f"-timeout={_TIMEOUT}",
                "-rss_limit_mb=0",  # the limit above holds
                "-print_final_stats=1",
                f"-artifact_prefix={crashes}/{name}-",
                str(corpus),
            ],
            lambda data: check(target, path, data),
        )
        atheris.Fuzz()


def _memory_disk() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _limit_memory(more: int) -> None:
    """Let this process take no more than this beyond what it has now."""
    import resource  # noqa: PLC0415  (not on Windows)

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    sys.exit(main())
