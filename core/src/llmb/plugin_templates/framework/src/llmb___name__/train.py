"""A training that only waits, so that the example runs anywhere: replace it by your framework's own program."""

import argparse
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, required=True)
options, _ = parser.parse_known_args()

for step in range(options.steps):
    begin = time.perf_counter()
    time.sleep(0.05)  # your model here
    if os.environ["RANK"] == "0":
        print(f"step {step}: loss {9 / (step + 1):.4f}, took {time.perf_counter() - begin:.4f} s", flush=True)
