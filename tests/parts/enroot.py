"""A stand-in for enroot 4.1.2, which Debian does not package. Its messages are copied from the original.

A container uses the file system of this machine. Bind mounts are real, in a mount namespace, which needs root.
"""

from __future__ import annotations

from pathlib import Path

ENROOT = r"""#!/bin/bash
# Set by the class Enroot: state, images (the URIs that registries have).
fail() { echo "[ERROR] $2" >&2; exit "$1"; }

has() { grep -qxF "$1" "$state/images"; }

import() { # --output FILE URI
  local file=$2 uri=$3
  echo "import $uri" >>"$state/calls"
  [ ! -e "$file" ] || fail 1 "File already exists: $file"
  case $uri in
    dockerd://*) docker create --name enroot "${uri#dockerd://}" >&2 || exit 1 ;;
    docker://*.invalid#*) echo "curl: (6) Could not resolve host: ${uri#docker://}" >&2; exit 6 ;;
    docker://*#*) has "$uri" || fail 1 "URL https://x returned error code: 404 Not Found" ;;
    docker://*) has "$uri" || fail 1 "URL https://auth.docker.io returned error code: 401 Unauthorized" ;;
  esac
  echo "[INFO] Fetching image manifest" >&2
  until [ ! -e "$state/gate" ]; do sleep 0.02; done
  cat "$state/image" >"$file"
  exit "$(cat "$state/status" 2>/dev/null || echo 0)"
}

create() { # --name NAME FILE
  [ -s "$3" ] || fail 1 "No such file or directory: $3"
  [ ! -e "$state/containers/$2" ] || fail 1 "File already exists: $state/containers/$2"
  mkdir "$state/containers/$2"
}

remove() { # --force NAME
  [ "$1" = --force ] || fail 1 "Could not read from a terminal"
  rmdir "$state/containers/$2" 2>/dev/null || fail 1 "No such file or directory: $state/containers/$2"
}

start() { # --rw --conf FILE --mount M... --env E... NAME COMMAND
  local mounts=() given=() conf='' name
  while :; do
    case $1 in
      --rw) shift ;;
      --conf) conf=$2 && shift 2 ;;
      --mount) mounts+=("$2") && shift 2 ;;
      --env) given+=("$2") && shift 2 ;;
      *) break ;;
    esac
  done
  name=$1 && shift
  [ -d "$state/containers/$name" ] || fail 1 "No such file or directory: $state/containers/$name"
  export ENROOT_ENVIRON=$state/environ
  cat "$state/environment" >"$ENROOT_ENVIRON" # of the image; these replace the host's
  if [ -n "$conf" ]; then
    . "$conf"
    environ >>"$ENROOT_ENVIRON"
  fi
  printf '%s\n' "${given[@]}" >>"$ENROOT_ENVIRON"
  while IFS= read -r each; do export "${each?}"; done <"$ENROOT_ENVIRON" # the last of several counts
  case $NVIDIA_VISIBLE_DEVICES in
    void | none) ;;
    *)
      command -v nvidia-container-cli >/dev/null ||
        fail 1 "Command not found: nvidia-container-cli, see https://github.com/NVIDIA/libnvidia-container"
      nvidia-container-cli "${NVIDIA_DRIVER_CAPABILITIES:-utility}" ;;
  esac
  printf '%s\n' "${mounts[@]}" | exec unshare --mount bash -c '
    while IFS=: read -r source target _ options; do
      if [ ! -e "$source" ]; then
        echo "enroot-mount: failed to mount: $source at $target: No such file or directory" >&2
        exit 1
      fi
      if [ -d "$source" ]; then mkdir -p "$target"; else mkdir -p "${target%/*}" && touch "$target"; fi
      mount --bind "$source" "$target" || exit 1
      case ,$options, in *,ro,*) mount -o remount,bind,ro "$target" || exit 1 ;; esac
    done
    exec "$@" </dev/null' bash "$@"
}

case $1 in
  version) echo 4.1.2 ;;
  list) ls "$state/containers" ;;
  *) "$@" ;;
esac
"""


SQUASHFS = b"hsqs" + bytes(36) + (96).to_bytes(8, "little") + bytes(48)
"""The smallest file with the header of a complete squashfs."""


class Enroot:
    """Stand-in that is installed in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.state = folder / "state"
        (self.state / "containers").mkdir(parents=True)
        (self.state / "images").touch()
        (self.state / "image").write_bytes(SQUASHFS)
        (self.state / "environment").write_text("PYTHONPATH=/image\nNVIDIA_VISIBLE_DEVICES=all\n")
        self.bin.mkdir()
        self._install("enroot", ENROOT.replace("# Set by", f"state='{self.state}'\n# Set by", 1))

    def _install(self, name: str, text: str) -> None:
        program = self.bin / name
        program.write_text(text)
        program.chmod(0o755)

    def add_gpu(self) -> None:
        """Install an nvidia-smi that lists one GPU, and an nvidia-container-cli that records the capabilities."""
        self._install("nvidia-smi", "#!/bin/sh\necho 0, NVIDIA H100 80GB HBM3, 81559, 1, 550.54.15\n")
        self._install("nvidia-container-cli", f"#!/bin/sh\necho \"$1\" >>'{self.state}/capabilities'\n")

    def add_docker(self, image: str, create: str = ":") -> None:
        """Install a Docker that has an image, and runs the bash code ``create`` to create a container."""
        inspect = f'"image inspect --format {{{{.Id}}}} {image}") echo sha256:ab ;;'
        self._install("docker", f'#!/bin/bash\ncase "$*" in\n{inspect}\ncreate*) {create} ;;\n*) exit 1 ;;\nesac\n')

    def set_in_image(self, line: str) -> None:
        """Add a line to the file /etc/environment of the images."""
        with (self.state / "environment").open("a") as file:
            file.write(f"{line}\n")

    def publish(self, uri: str) -> None:
        """Add an image to the registry."""
        with (self.state / "images").open("a") as file:
            file.write(f"{uri}\n")

    def import_ends(self, content: bytes, status: int) -> None:
        """Set what the next imports write, and their exit code."""
        (self.state / "image").write_bytes(content)
        (self.state / "status").write_text(str(status))

    @property
    def containers(self) -> list[str]:
        """Containers that were created and not removed."""
        return [each.name for each in (self.state / "containers").iterdir()]

    @property
    def capabilities(self) -> list[str]:
        """Capabilities of the NVIDIA driver that containers with GPUs got, in the order of their starts."""
        recorded = self.state / "capabilities"
        return recorded.read_text().splitlines() if recorded.exists() else []

    @property
    def imports(self) -> list[str]:
        """URIs that were imported, in order."""
        calls = self.state / "calls"
        return [line.split()[1] for line in calls.read_text().splitlines()] if calls.exists() else []
