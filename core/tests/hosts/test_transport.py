"""The transport of SSH connections."""

from __future__ import annotations

import runpy

import pytest
from paramiko import Transport

from llmb.hosts.ssh import transport


def test_a_machine_without_curve25519_can_use_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL lacks it in FIPS mode, and paramiko then leaves it out."""
    names = "_kex_info", "_preferred_kex"
    kinds, preferred = (getattr(Transport, name) for name in names)
    monkeypatch.setattr(Transport, names[0], {name: kind for name, kind in kinds.items() if "25519" not in name})
    monkeypatch.setattr(Transport, names[1], tuple(name for name in preferred if "25519" not in name))
    found = runpy.run_path(transport.__file__)["_Transport"]
    assert not [name for name in found._preferred_kex if "25519" in name]
