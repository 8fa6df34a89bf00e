"""A scheduler of many nodes that is only a scheduler by name, so that large jobs can be loaded as a user would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import tomli_w

import llmb

MANY_NODES = """\
import attrs

from llmb import SchedulerHooks


@attrs.frozen
class Options:
    pass


class ManyNodes(SchedulerHooks[Options]):
    options = Options
"""

LoadRun = Callable[..., "llmb.Run[Any]"]


@pytest.fixture
def load_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadRun:
    """Loads a spec of one run; the run's id and directory are always the same."""
    site = tmp_path / "site"
    info = site / "llmb_many_nodes-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "llmb_many_nodes.py").write_text(MANY_NODES)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llmb-many-nodes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[llmb.schedulers]\nmany_nodes = llmb_many_nodes:ManyNodes\n")
    monkeypatch.syspath_prepend(str(site))

    def load(
        recipe: str, gpu_type: str, dtype: str, gpus: int, *overrides: str, **tables: dict[str, Any]
    ) -> llmb.Run[Any]:
        workload = {"recipe": f"megatron_bridge/{recipe}", "gpu_type": gpu_type, "dtype": dtype, "gpus": gpus}
        file = tmp_path / "spec.toml"
        workload |= tables.pop("workload", {})
        file.write_text(tomli_w.dumps({"workload": workload, "target": {"scheduler": "many_nodes"}, **tables}))
        [placed] = llmb.load(file, overrides=overrides).runs
        return attrs.evolve(placed.run, id="RUN", paths=llmb.Paths(run="/w/runs/RUN", cache="/w/cache"))

    return load
