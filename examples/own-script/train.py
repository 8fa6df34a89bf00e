"""Train a tiny language model on random tokens, on as many processes as torchrun starts."""

import argparse
import os
import time

import torch
from torch import distributed, nn

parser = argparse.ArgumentParser()
for name in ("steps", "batch", "seq"):
    parser.add_argument(f"--{name}", type=int, required=True)
arguments = parser.parse_args()
distributed.init_process_group("gloo")
rank, ranks = distributed.get_rank(), distributed.get_world_size()
assert rank == int(os.environ["RANK"])

torch.manual_seed(rank)
vocab, hidden = 256, 64
layers = nn.Sequential(nn.Embedding(vocab, hidden), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, vocab))
model = nn.parallel.DistributedDataParallel(layers)
optimizer = torch.optim.AdamW(model.parameters())
tokens = torch.randint(vocab, (arguments.batch // ranks, arguments.seq + 1))

for step in range(arguments.steps):
    begin = time.perf_counter()
    loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0:
        print(f"iter {step}: loss {loss:.4f}, time {1e3 * (time.perf_counter() - begin):.3f}ms", flush=True)

if rank == 0:
    print("done training")
distributed.destroy_process_group()
