"""Verification of a bundle without network: its files, its signature, and its metrics, computed again from its logs."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import attrs

from llmb.drive.record import RunRecord
from llmb.judging.bundle import MANIFEST, NAMESPACE, SIGNATURE
from llmb.judging.recompute import recompute
from llmb.plugins.registry import PluginRegistry
from llmb.values.errors import LlmbError

MOST_BYTES = 4 << 30
"""The size of all files up to which a bundle is unpacked."""


@attrs.frozen(kw_only=True)
class BundleCheck:
    """The result of a verification. ``mismatches`` is empty if everything agrees.

    ``signer`` is the principal of the allowed signers file who signed the bundle, "" if that was not checked.
    """

    run_ids: tuple[str, ...]
    files: int
    redacted: bool
    signed: bool
    signer: str
    mismatches: tuple[str, ...]


def verify_bundle(file: Path, *, allowed_signers: Path | None = None) -> BundleCheck:
    """Check the files of a bundle against its manifest and signature, and compute its metrics again from its logs.

    Raise LlmbError if the file is no bundle, and PluginError if a plugin that the runs need is not installed.
    """
    files = _unpack(file)
    try:
        manifest = json.loads(files[MANIFEST])
        expected, run_ids = dict(manifest["files"]), tuple(map(str, manifest["runs"]))
    except (KeyError, ValueError, TypeError) as error:
        raise LlmbError(f"{file} is not a bundle of llmb: it has no valid {MANIFEST}") from error
    mismatches = [*_compare_files(files, expected)]
    signer = ""
    if allowed_signers:
        signer, problem = _check_signature(files, allowed_signers)
        mismatches += [problem] if problem else []
    if not mismatches:
        with tempfile.TemporaryDirectory(prefix="llmb-bundle-") as folder:
            for name, data in files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            registry = PluginRegistry()
            records = [RunRecord(Path(folder, "runs", run_id)) for run_id in run_ids]
            mismatches += [f"{run_id}: {problem}" for run_id, problem in recompute(records, registry)]
    return BundleCheck(
        run_ids=run_ids,
        files=len(expected),
        redacted=bool(manifest.get("redacted")),
        signed=SIGNATURE in files,
        signer=signer,
        mismatches=tuple(mismatches),
    )


def _unpack(file: Path) -> dict[str, bytes]:
    """Return the files of a bundle. Raise LlmbError for anything that is not a plain file below the top."""
    files: dict[str, bytes] = {}
    left = MOST_BYTES
    try:
        with tarfile.open(file, "r:gz") as tar:
            for entry in tar:
                path, left = PurePosixPath(entry.name), left - entry.size
                if not entry.isreg() or path.is_absolute() or ".." in path.parts or entry.name in files or left < 0:
                    raise LlmbError(f"{file} is not a bundle of llmb: unexpected entry {entry.name!r}")
                content = tar.extractfile(entry)
                files[entry.name] = content.read() if content else b""
    except (OSError, tarfile.TarError, EOFError) as error:
        raise LlmbError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return files


def _compare_files(files: Mapping[str, bytes], expected: Mapping[str, str]) -> Iterator[str]:
    present = files.keys() - {MANIFEST, SIGNATURE}
    yield from (f"{name} is missing" for name in sorted(expected.keys() - present))
    yield from (f"{name} is not in the manifest" for name in sorted(present - expected.keys()))
    for name in sorted(present & expected.keys()):
        if hashlib.sha256(files[name]).hexdigest() != expected[name]:
            yield f"{name} was changed: its SHA-256 is not that of the manifest"


def _check_signature(files: Mapping[str, bytes], allowed_signers: Path) -> tuple[str, str]:
    """Return the principal who signed the manifest, and the problem with the signature, one of them empty."""
    if SIGNATURE not in files:
        return "", "the bundle is not signed"
    with tempfile.TemporaryDirectory(prefix="llmb-sign-") as folder:
        signature = Path(folder, SIGNATURE)
        signature.write_bytes(files[SIGNATURE])
        common = ["-f", str(allowed_signers), "-s", str(signature)]
        found = _ssh_keygen(["find-principals", *common], b"")
        if found.returncode or not found.stdout.strip():
            return "", f"the signature is not of a signer in {allowed_signers}"
        signer = found.stdout.decode(errors="replace").splitlines()[0]
        checked = _ssh_keygen(["verify", "-n", NAMESPACE, "-I", signer, *common], files[MANIFEST])
        return (signer, "") if checked.returncode == 0 else ("", "the signature does not match the manifest")


def _ssh_keygen(arguments: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", "-Y", *arguments], input=data, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise LlmbError("cannot check the signature: ssh-keygen is not installed") from error
