print_node_provenance() {
  echo "host=$(uname -n)"
  echo "kernel=$(uname -r)"
  nvidia-smi --query-gpu=driver_version,name --format=csv,noheader 2>/dev/null | sort -u |
    sed 's/\([^,]*\), /driver=\1\ngpu=/'
}

# add_software_provenance PATTERN...: append what rank 0 finds to `provenance`, once. Omit variables that match a
# PATTERN.
add_software_provenance() {
  [ "$RANK" = 0 ] && ! grep -q ^nccl= provenance 2>/dev/null || return 0
  { print_library_versions; print_environment "$@"; chmod 600 provenance; } 2>/dev/null >>provenance # an image may lack programs
}

print_library_versions() {
  local nccl
  nccl=$(ldconfig -p | sed -n 's/.*libnccl\.so.* => //p' | head -n 1)
  [ -z "$nccl" ] || nccl=$(readlink -f "$nccl")
  echo "nccl=${NCCL_VERSION:-${nccl##*libnccl.so.}}"
  echo "cuda=${CUDA_VERSION:-$(sed -n 's/.*"version" *: *"\([^"]*\)".*/\1/p' /usr/local/cuda/version.json | head -n 1)}"
}

# print_environment PATTERN...: print variables, except those that match a PATTERN or may be secret. This is stricter
# than the check of [env] in a spec.
print_environment() {
  local name value pattern
  env -0 | while IFS='=' read -r -d '' name value; do
    for pattern; do [[ $name != $pattern ]] || continue 2; done
    case $value in
      *://*@*) continue ;; # a URL with a password
      hf_* | gh[a-z]_* | github_pat_* | glpat-* | xox[a-z]-* | sk-* | nvapi-* | AKIA* | eyJ* | -----BEGIN*) continue ;;
    esac
    case ${name^^} in
      *TOKEN* | *KEY* | *SECRET* | *PASS* | *PWD* | *CRED* | *AUTH* | *PROXY* | *COOKIE* | *WEBHOOK* | PAT | *_PAT) ;;
      *) printf 'env.%s=%s\n' "$name" "${value//$'\n'/ }" ;;
    esac
  done
}
