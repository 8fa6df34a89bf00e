"""Verification of a bundle without network: its files, its signature, and its metrics, computed again from its logs."""

import hashlib
import json
import re
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import attrs

from llmb.plugins.registry import PluginRegistry
from llmb.reports.bundle_files import MANIFEST, NAMESPACE, NEEDED, SIGNATURE
from llmb.reports.recompute_and_compare import find_mismatches
from llmb.values.errors import Fault, LlmbError
from llmb.version import VERSION

MAX_BYTES = 4 << 30
"""The size of all files up to which a bundle is unpacked."""

PUBLIC_KEY = re.compile(r"(ssh|ecdsa|sk)-\S+ ")
"""The beginning of a public key. A line of an allowed signer begins with the principal."""


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
    needed = [f"runs/{run_id}/{name}" for run_id in run_ids for name in NEEDED]
    missing = [f"{name} is missing" for name in needed if name not in files and name not in expected]
    mismatches = [*_compare_files(files, expected), *missing]
    signer = ""
    if allowed_signers:
        _check_allowed_signers(allowed_signers)
        signer, problem = _check_signature(files, allowed_signers)
        mismatches += [problem] if problem else []
    if not mismatches:
        with_tables = manifest.get("llmb") == VERSION  # other versions may write other reports of the same records
        mismatches += find_mismatches(files, run_ids, PluginRegistry(), with_tables=with_tables)
    return BundleCheck(
        run_ids=run_ids,
        files=len(expected),
        redacted=bool(manifest.get("redacted")),
        signed=SIGNATURE in files,
        signer=signer,
        mismatches=tuple(mismatches),
    )


def _unpack(file: Path) -> dict[str, bytes]:
    """Return the files of a bundle. Raise LlmbError for anything that is not a plain file or folder below the top.

    `tar czf FILE .` packs an unpacked bundle again with folders, and with ``./`` before each name.
    """
    files: dict[str, bytes] = {}
    left = MAX_BYTES
    try:
        with tarfile.open(file, "r:gz") as tar:
            for entry in tar:
                path, left = PurePosixPath(entry.name), left - entry.size
                plain = entry.isreg() or entry.isdir()
                if not plain or path.is_absolute() or ".." in path.parts or str(path) in files:
                    raise LlmbError(f"{file} is not a bundle of llmb: unexpected entry {entry.name!r}")
                if left < 0:
                    raise LlmbError(f"{file} is too large to verify: its files have more than {MAX_BYTES >> 30} GiB")
                if content := tar.extractfile(entry):
                    files[str(path)] = content.read()
    except (OSError, tarfile.TarError, EOFError, zlib.error) as error:
        raise LlmbError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return files


def _compare_files(files: Mapping[str, bytes], expected: Mapping[str, str]) -> Iterator[str]:
    present = files.keys() - {MANIFEST, SIGNATURE}
    yield from (f"{name} is missing" for name in sorted(expected.keys() - present))
    yield from (f"{name} is not in the manifest" for name in sorted(present - expected.keys()))
    for name in sorted(present & expected.keys()):
        if hashlib.sha256(files[name]).hexdigest() != expected[name]:
            yield f"{name} was changed: its SHA-256 is not that of the manifest"


def _check_allowed_signers(file: Path) -> None:
    """Raise LlmbError if a file of allowed signers cannot be read, or contains a public key without a signer."""
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError as error:
        raise LlmbError(f"{file} cannot be read: {error.strerror}") from error
    if any(PUBLIC_KEY.match(line) for line in lines):
        expected = "lines such as `me@example.com ssh-ed25519 AAAA...`"
        raise LlmbError(Fault(message="a public key without its signer", file=str(file), expected=expected))


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
            return "", _refused_key(found, allowed_signers) or f"the signature is not of a signer in {allowed_signers}"
        signer = found.stdout.decode(errors="replace").splitlines()[0]
        checked = _ssh_keygen(["verify", "-n", NAMESPACE, "-I", signer, *common], files[MANIFEST])
        if checked.returncode == 0:
            return signer, ""
        return "", _refused_key(checked, allowed_signers) or "the signature does not match the manifest"


def _refused_key(answer: subprocess.CompletedProcess[bytes], allowed_signers: Path) -> str:
    """Return why a line of the file does not accept the key, such as ``signers:1: key has expired``, or ""."""
    lines = answer.stderr.decode(errors="replace").splitlines()
    refused = (line for line in lines if line.startswith(f"{allowed_signers}:") and ": key " in line)
    return next((f"{line}; correct that line of the file" for line in refused), "")


def _ssh_keygen(arguments: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", "-Y", *arguments], input=data, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise LlmbError("cannot check the signature: ssh-keygen is not installed") from error
