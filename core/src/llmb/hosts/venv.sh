# Create a virtual environment with uv. Set above: venv, cache, uv, wanted, running, versions, print_lock_file().
set -eu

# find_uv: print the path of uv: the stated one, an installed one, or one that this installs into the cache.
find_uv() {
  local each tools=$cache/tools/uv
  for each in "$uv" uv "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv" "$tools/bin/uv"; do
    if [ -n "$each" ] && command -v "$each"; then return; fi
  done
  mkdir -p "$cache/tools"
  # pip takes other variables than uv for the index and for certificates
  if [ -n "${UV_INDEX_URL-}" ]; then export PIP_INDEX_URL=${PIP_INDEX_URL:-$UV_INDEX_URL}; fi
  if [ -n "${SSL_CERT_FILE-}" ]; then export PIP_CERT=${PIP_CERT:-$SSL_CERT_FILE}; fi
  if { python3 -m venv "$tools.$$" && "$tools.$$/bin/pip" install --quiet uv; } >&2; then :; else
    rm -rf "$tools.$$"
    python3 -m pip install --quiet --target "$tools.$$" uv >&2 || { rm -rf "$tools.$$" && return 1; }
  fi
  mv -T "$tools.$$" "$tools" 2>/dev/null || rm -rf "$tools.$$" # another process was faster
  command -v "$tools/bin/uv"
}

# is_suitable PYTHON: check whether an interpreter starts (a pyenv shim may not) and has an allowed version.
is_suitable() {
  "$1" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] not in sys.argv[1:])' "${versions[@]}" >/dev/null 2>&1
}

find_python() {
  local version each
  if [ -n "$running" ] && is_suitable "$running"; then echo "$running" && return; fi
  for version in "${versions[@]}"; do
    for each in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
      if is_suitable "$each"; then command -v "$each" && return; fi
    done
  done
  "$uv" python find --no-python-downloads "$wanted" 2>/dev/null || echo "$wanted" # uv downloads a version that fits
}

create_venv() {
  "$uv" venv --quiet --no-project --no-config --python "$python" "$venv" &&
    print_lock_file >"$venv/requirements.lock" &&
    "$uv" pip sync --quiet --no-config --require-hashes --python "$venv/bin/python" "$venv/requirements.lock" &&
    : >"$venv/complete"
}

output=''

# at_exit: remove an incomplete environment, then print the output, for which a full disk may have had no room. If no
# suitable Python was found, the output is that of its download.
at_exit() {
  [ "$python" != "$wanted" ] || [ -e "$venv/bin/python" ] ||
    output+=$'\n'"no Python $wanted on $HOSTNAME, and uv cannot download one"
  [ -e "$venv/complete" ] || rm -rf "$venv"
  [ -z "$output" ] || echo "$output" >&2
}

uv=$(find_uv) || { echo "cannot find or install uv on $HOSTNAME; install it there: \`python3 -m pip install uv\`" >&2 && exit 1; }
python=$(find_python)
echo "creating $venv with $python"
rm -rf "$venv"
mkdir -p "$(dirname "$venv")"
[ -n "$running" ] || export UV_PYTHON_INSTALL_DIR=$cache/python
trap at_exit EXIT
trap 'exit 143' TERM
output=$(create_venv 2>&1)
