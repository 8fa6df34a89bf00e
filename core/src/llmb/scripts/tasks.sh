free_port() { # the first from $1 on that nothing listens on
  local port=$1
  while (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
  echo "$port"
}

export_master() { # address, port: where rank 0 listens
  export MASTER_ADDR=$1 MASTER_PORT=$2 LLMB_MASTER_ADDR=$1 LLMB_MASTER_PORT=$2
}

export_rank() { # rank, local rank, node's rank, world size, local world size
  export RANK=$1 LOCAL_RANK=$2 NODE_RANK=$3 WORLD_SIZE=$4 LOCAL_WORLD_SIZE=$5
  export LLMB_RANK=$1 LLMB_LOCAL_RANK=$2 LLMB_NODE_RANK=$3 LLMB_WORLD_SIZE=$4 LLMB_LOCAL_WORLD_SIZE=$5
}

end_groups() { # seconds of grace, process groups: TERM to all, and KILL to those that do not heed it so long
  local grace_s=$1 group tenth
  shift
  for group; do kill -TERM -- "-$group" 2>/dev/null; done
  for ((tenth = 0; tenth < 10 * grace_s; tenth++)); do
    for group; do kill -0 -- "-$group" 2>/dev/null && sleep 0.1 && continue 2; done
    return
  done
  for group; do kill -KILL -- "-$group" 2>/dev/null; done
}

tell() { (set -C && echo "$1" >failed) 2>/dev/null; } # why the job ends: the first failure is the one that counts

output() { # phase, file, for how many seconds a network's file system may not show it: must be there and not be empty
  local tenth
  for ((tenth = 0; tenth <= 10 * $3; tenth++)); do [ -s "$2" ] && return || sleep 0.1; done
  tell "phase $1: its output $2 is missing or empty"
  exit 1
}

read_secrets() { [ ! -f .secrets ] || . ./.secrets; } # what is placed beside the job's script

tell_node() { # what this node is, as lines of a job's provenance
  echo "host=$(hostname)"
  echo "kernel=$(uname -r)"
  nvidia-smi --query-gpu=driver_version,name --format=csv,noheader 2>/dev/null | sort -u |
    sed 's/\([^,]*\), /driver=\1\ngpu=/'
}

tell_software() { # patterns of names: the first rank adds to provenance, once, what it finds around it, but not these
  [ "$RANK" = 0 ] && ! grep -q ^nccl= provenance 2>/dev/null || return 0
  { tell_libraries; tell_environment "$@"; chmod 600 provenance; } 2>/dev/null >>provenance # an image may lack programs
}

tell_libraries() {
  local nccl
  nccl=$(ldconfig -p | sed -n 's/.*libnccl\.so.* => //p' | head -n 1)
  [ -z "$nccl" ] || nccl=$(readlink -f "$nccl")
  echo "nccl=${NCCL_VERSION:-${nccl##*libnccl.so.}}"
  echo "cuda=${CUDA_VERSION:-$(sed -n 's/.*"version" *: *"\([^"]*\)".*/\1/p' /usr/local/cuda/version.json | head -n 1)}"
}

tell_environment() { # patterns of names: without these, and all that may be secret; more than a spec is refused for
  local name value pattern
  env -0 | while IFS='=' read -r -d '' name value; do
    for pattern; do [[ $name != $pattern ]] || continue 2; done
    case $value in
      *://*@*) continue ;; # an address with a password
      hf_* | gh[a-z]_* | github_pat_* | glpat-* | xox[a-z]-* | sk-* | nvapi-* | AKIA* | eyJ* | -----BEGIN*) continue ;;
    esac
    case ${name^^} in
      *TOKEN* | *KEY* | *SECRET* | *PASS* | *PWD* | *CRED* | *AUTH* | *PROXY* | *COOKIE* | *WEBHOOK* | PAT | *_PAT) ;;
      *) printf 'env.%s=%s\n' "$name" "${value//$'\n'/ }" ;;
    esac
  done
}
