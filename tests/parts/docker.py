"""A real Docker engine with its own folders and socket, images without a registry, a local registry, and Podman.

The Docker engine of the machine is neither read nor changed. Starting an engine needs root.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from parts.deadline import wait_until
from parts.ports import free_port

PROGRAMS = ("dockerd", "containerd", "docker", "busybox")

CONTAINERD = """version = 2
root = "{folder}/containerd/root"
state = "{folder}/containerd/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{folder}/containerd/socket"
"""

REGISTRY_CONFIG = """version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/blobs}}}}
http: {{addr: "{address}"}}
"""
LOGIN = """auth: {{htpasswd: {{realm: registry, path: {folder}/htpasswd}}}}
"""


def missing() -> str:
    """Return why no engine can be started here, or an empty string."""
    if lacking := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"{', '.join(lacking)} is not installed"
    return "" if os.geteuid() == 0 else "only root can start a Docker engine"


class Docker:
    """Docker engine with a separate containerd, like the services of Debian's packages.

    ``live_restore``: containers survive a restart of the daemon. ``disk_mb``: size of the disk with the images.
    """

    def __init__(self, *, live_restore: bool = False, disk_mb: int | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="llmb-docker-"))
        self.folder.chmod(0o755)
        self.socket = self.folder / "docker.sock"
        self.live_restore = live_restore
        self.disk_mb = disk_mb
        self._containerd: subprocess.Popen[bytes] | None = None
        self._daemon: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Docker:
        (self.folder / "containerd.toml").write_text(CONTAINERD.format(folder=self.folder))
        self._containerd = self._process("containerd", "--config", str(self.folder / "containerd.toml"))
        wait_until((self.folder / "containerd/socket").exists, "containerd")
        if self.disk_mb:
            (self.folder / "data").mkdir()
            mount = ["mount", "-t", "tmpfs", "-o", f"size={self.disk_mb}m", "tmpfs", str(self.folder / "data")]
            subprocess.run(mount, check=True)
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        if not self.up:
            self.start()
        if containers := self("ps", "--all", "--quiet").split():
            self("rm", "--force", "--volumes", *containers)
        for process in (self._daemon, self._containerd):
            assert process
            process.terminate()
            process.wait()
        mounts = (line.split()[1] for line in Path("/proc/mounts").read_text().splitlines())
        for mount in reversed([each for each in mounts if each.startswith(str(self.folder))]):
            subprocess.run(["umount", "--lazy", mount], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def env(self) -> dict[str, str]:
        """Environment of a client."""
        return {"DOCKER_HOST": f"unix://{self.socket}", "DOCKER_CONFIG": str(self.folder / "config")}

    @property
    def up(self) -> bool:
        """Check whether the daemon responds."""
        return self._daemon is not None and self._docker("version").returncode == 0

    def start(self) -> None:
        """Start the daemon, and wait until it responds."""
        for left in ("docker.pid", "docker.sock"):
            (self.folder / left).unlink(missing_ok=True)
        settings = {
            "--containerd": f"{self.folder}/containerd/socket",
            "--data-root": f"{self.folder}/data",
            "--exec-root": f"{self.folder}/exec",
            "--host": f"unix://{self.socket}",
            "--pidfile": f"{self.folder}/docker.pid",
        }
        words = [word for pair in settings.items() for word in pair]
        live = ["--live-restore"] if self.live_restore else []
        self._daemon = self._process("dockerd", *words, *live, "--iptables=false", "--bridge=none")
        wait_until(lambda: self.up, "dockerd")

    def kill(self) -> None:
        """Kill the daemon as in a crash. Containers stay alive."""
        assert self._daemon
        self._daemon.send_signal(signal.SIGKILL)
        self._daemon.wait()

    def _process(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{command[0]}.log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def _docker(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **self.env}
        return subprocess.run(["docker", *arguments], env=env, capture_output=True, text=True, check=False)

    def __call__(self, *arguments: str) -> str:
        """Return the output of ``docker ...``."""
        done = self._docker(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def containers(self) -> list[str]:
        """Names of all containers, running or not."""
        return self("ps", "--all", "--format", "{{.Names}}").split()

    @property
    def leftovers(self) -> list[str]:
        """Containers, volumes and networks that the engine did not create for itself."""
        networks = self("network", "ls", "--filter", "type=custom", "--format", "{{.Name}}").split()
        return [*self.containers, *self("volume", "ls", "--quiet").split(), *networks]

    def import_image(self, root: Path, name: str, *changes: str, also: Iterable[Path] = ()) -> str:
        """Import an image; see `import_image`."""
        return import_image(root, name, *changes, also=also, env={**os.environ, **self.env})


def import_image(root: Path, name: str, *changes: str, also: Iterable[Path] = (), env: Mapping[str, str]) -> str:
    """Import an image from a folder, and from ``also``: folders of this machine that keep their paths. Return its id.

    ``changes`` are lines of a Dockerfile. ``env`` is the environment of the engine's clients.
    """
    words = [word for change in changes for word in ("--change", change)]
    more = [str(folder).lstrip("/") for folder in also]
    pack = shlex.join(["tar", "-cf", "-", "-C", str(root), ".", *(["-C", "/", *more] if more else [])])
    pack = f"{{ {pack} || [ $? = 1 ]; }}"  # 1: the attributes of a file changed, such as its number of hard links
    command = ["bash", "-c", f"set -o pipefail; {pack} | {shlex.join(['docker', 'import', *words, '-', name])}"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Registry:
    """Start a registry on a loopback port, which Docker trusts without TLS. ``login`` requires user and password."""

    def __init__(self, *, login: tuple[str, str] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="llmb-registry-"))
        self.address = f"127.0.0.1:{free_port()}"
        self.login = login
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Registry:
        text = REGISTRY_CONFIG + (LOGIN if self.login else "")
        (self.folder / "config.yml").write_text(text.format(folder=self.folder, address=self.address))
        if self.login:
            user, password = self.login
            words = ["perl", "-e", "print crypt($ARGV[0], '$2b$05$' . 'a' x 21 . 'u')", password]
            hashed = subprocess.run(words, capture_output=True, text=True, check=True).stdout  # bcrypt
            (self.folder / "htpasswd").write_text(f"{user}:{hashed}\n")
        self._process = subprocess.Popen(
            ["docker-registry", "serve", str(self.folder / "config.yml")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._answers, "docker-registry")
        return self

    def __exit__(self, *_exception: object) -> None:
        assert self._process
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the registry respond only after the block."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"http://{self.address}/v2/", timeout=5).close()
        except urllib.error.HTTPError:
            return True  # it requires a login
        except OSError:
            return False
        return True


def write_tiny_root(root: Path, files: Mapping[str, str]) -> None:
    """Write a root file system with bash, busybox, and these programs: a text for each path."""
    for folder in ("bin", "tmp", "etc", "proc", "dev", "sys", "root"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    busybox = shutil.which("busybox")
    assert busybox, "busybox-static is not installed"
    shutil.copy(busybox, root / "bin/busybox")
    for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    copy_program(Path("/bin/bash"), root)
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(text)
        file.chmod(0o755)


def copy_program(program: Path, root: Path) -> None:
    """Copy a program of this machine with its libraries."""
    target = root / program.relative_to("/")
    target.unlink(missing_ok=True)
    shutil.copy(program, target)
    copy_libraries([program], root)


def copy_libraries(programs: Iterable[Path], root: Path) -> None:
    """Return the system libraries that these programs and libraries need."""
    needed = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    for path in {word for word in needed.split() if word.startswith(("/lib", "/usr/lib")) and word[-1] != ":"}:
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy(path, target)


class Podman:
    """Podman with its own storage and without a daemon. ``env`` is the environment of a client."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="llmb-podman-"))
        storage = {"driver": "vfs", "graphroot": f"{self.folder}/graph", "runroot": f"{self.folder}/run"}
        lines = ["[storage]", *(f'{name} = "{value}"' for name, value in storage.items())]
        (self.folder / "storage.conf").write_text("\n".join(lines) + "\n")
        limits = '["nofile=20000:20000", "nproc=10000:10000"]'  # the limits of a machine that may not raise them
        engine = f'[containers]\ndefault_ulimits = {limits}\n[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n'
        (self.folder / "containers.conf").write_text(engine)
        self.env = {
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
        }

    def __enter__(self) -> Podman:
        return self

    def __exit__(self, *_exception: object) -> None:
        if containers := self.containers:
            self("rm", "--force", "--volumes", *containers)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __call__(self, *arguments: str) -> str:
        """Return the output of ``podman ...``."""
        env = {**os.environ, **self.env}
        done = subprocess.run(["podman", *arguments], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def containers(self) -> list[str]:
        """Names of all containers, running or not."""
        return self("ps", "--all", "--format", "{{.Names}}").split()
