# Set above: venv, cache, uv, wanted, running, versions, lock().
set -eu

find_uv() { # the one that is told, one that is there, or one that is installed into the cache by what Python there is
  local each tools=$cache/tools/uv
  for each in "$uv" uv "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv" "$tools/bin/uv"; do
    if [ -n "$each" ] && command -v "$each"; then return; fi
  done
  mkdir -p "$cache/tools"
  if { python3 -m venv "$tools.$$" && "$tools.$$/bin/pip" install --quiet uv; } >&2; then :; else
    rm -rf "$tools.$$"
    python3 -m pip install --quiet --target "$tools.$$" uv >&2 || { rm -rf "$tools.$$" && return 1; }
  fi
  mv -T "$tools.$$" "$tools" 2>/dev/null || rm -rf "$tools.$$" # another process was faster
  command -v "$tools/bin/uv"
}

fits() { # an interpreter that really starts (a pyenv shim may not), of a version that fits
  "$1" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] not in sys.argv[1:])' "${versions[@]}" >/dev/null 2>&1
}

find_python() {
  local version each
  if [ -n "$running" ] && fits "$running"; then echo "$running" && return; fi
  for version in "${versions[@]}"; do
    for each in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
      if fits "$each"; then command -v "$each" && return; fi
    done
  done
  "$uv" python find --no-python-downloads "$wanted" 2>/dev/null || echo "$wanted" # uv brings one
}

make_all() {
  "$uv" venv --quiet --no-project --no-config --python "$python" "$venv" &&
    lock >"$venv/requirements.lock" &&
    "$uv" pip sync --quiet --no-config --require-hashes --python "$venv/bin/python" "$venv/requirements.lock" &&
    : >"$venv/complete"
}

said=''
end() { # what is not whole only takes space, and may have left none for what is said
  [ -e "$venv/complete" ] || rm -rf "$venv"
  [ -z "$said" ] || echo "$said" >&2
}

uv=$(find_uv) || { echo "there is no uv here, and it could not be installed; install it on this machine" >&2 && exit 1; }
python=$(find_python)
echo "making $venv with $python"
rm -rf "$venv"
mkdir -p "$(dirname "$venv")"
[ -n "$running" ] || export UV_PYTHON_INSTALL_DIR=$cache/python
trap end EXIT
trap 'exit 143' TERM
said=$(make_all 2>&1)
