"""Stand-in for the tokenization of a shard, which writes Megatron's index and data and removes the text."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from nemo_launcher.stages import run

TOKEN_BYTES, TOKEN_CODE = 4, 4  # 32-bit integers


def preprocess(given: dict[str, str], folder: Path, shard: int) -> None:
    assert given["tokenizer_library"] == "huggingface"
    assert Path(given["tokenizer_type"], "tokenizer.json").is_file(), "the tokenizer is missing"
    text = folder / f"{shard:02d}.jsonl"
    lengths = [len(json.loads(line)["text"].split()) for line in text.read_text().splitlines()]
    offsets = [TOKEN_BYTES * sum(lengths[:each]) for each in range(len(lengths))]
    documents = range(len(lengths) + 1)
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, TOKEN_CODE, len(lengths), len(documents))
    index += struct.pack(f"<{len(lengths)}i{len(offsets)}q{len(documents)}q", *lengths, *offsets, *documents)
    base = folder / f"my-llama_{shard:02d}_text_document"
    base.with_suffix(".bin").write_bytes(bytes(TOKEN_BYTES * sum(lengths)))
    base.with_suffix(".idx").write_bytes(index)
    text.unlink()


if __name__ == "__main__":
    run("preprocess", preprocess)
