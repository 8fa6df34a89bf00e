"""Stand-in for the extraction of a shard, which removes the archive."""

from __future__ import annotations

from pathlib import Path

from nemo_launcher.stages import run


def extract(_given: dict[str, str], folder: Path, shard: int) -> None:
    archive = folder / f"{shard:02d}.jsonl.zst"
    assert archive.read_text() == "compressed\n" * 10
    (folder / f"{shard:02d}.jsonl").write_text('{"text": "a b c"}\n{"text": "d e"}\n')
    archive.unlink()


if __name__ == "__main__":
    run("extract", extract)
