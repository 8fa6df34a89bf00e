# Set above: venv, uv, wanted, running, versions, lock().
set -eu

fits() { # an interpreter that really starts (a pyenv shim may not), of a version that fits
  "$1" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] not in sys.argv[1:])' "${versions[@]}" >/dev/null 2>&1
}

find_python() {
  local version each
  if fits "$running"; then echo "$running" && return; fi
  for version in "${versions[@]}"; do
    for each in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
      if fits "$each"; then command -v "$each" && return; fi
    done
  done
  "$uv" python find --no-python-downloads "$wanted" 2>/dev/null || echo "$wanted" # uv brings one
}

python=$(find_python)
echo "making $venv with $python"
rm -rf "$venv"
mkdir -p "$(dirname "$venv")"
"$uv" venv --quiet --no-project --no-config --python "$python" "$venv"
lock >"$venv/requirements.lock"
"$uv" pip sync --quiet --no-config --require-hashes --python "$venv/bin/python" "$venv/requirements.lock"
: >"$venv/complete"
