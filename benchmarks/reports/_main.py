"""Shared driver: `python NAME.py setup|bad|fixed`, in a folder of its own. Prints seconds= of the work."""

import sys
import time


def main(setup, bad, fixed):
    mode = sys.argv[1] if len(sys.argv) > 1 else "bad"
    begin, cpu = time.perf_counter(), time.process_time()
    result = {"setup": setup, "bad": bad, "fixed": fixed}[mode]()
    print(
        f"seconds={time.perf_counter() - begin:.3f} cpu={time.process_time() - cpu:.3f}",
        file=sys.stderr,
    )
    if mode != "setup":
        print("result", result)
