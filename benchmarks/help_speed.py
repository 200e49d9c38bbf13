"""`journeyman --help` compared with a bare `python -c pass`, the median of ten runs each."""

import statistics
import subprocess
import sys
import time


def median_ms(program: list[str]) -> float:
    times = []
    for _ in range(10):
        began = time.perf_counter()
        subprocess.run(program, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def main() -> None:
    bare = median_ms([sys.executable, "-c", "pass"])
    ours = median_ms([sys.executable, "-m", "journeyman", "--help"])
    print(f"python -c pass      {bare:.0f} ms")
    print(f"journeyman --help   {ours:.0f} ms")
    print(f"help / bare Python: {ours / bare:.1f}")


if __name__ == "__main__":
    main()
