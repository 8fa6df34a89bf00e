# Starts the ranks of a phase, and ends them all when one fails. Set above: grace_s, secrets, gpus, environment().
ranks=() place=inside
start_rank() { # phase, rank, number of ranks, command
  (
    environment "$place"
    [ -z "$gpus" ] || export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$gpus
    export_master 127.0.0.1 "$master_port"
    export_rank "$2" "$2" 0 "$3" "$3"
    [ "$place" = outside ] || tell_software "${secrets[@]}"
    phase=$1
    shift 3
    "$@" || tell_end "phase $phase, rank $RANK" $?
  ) >"logs/$1.$LLMB_ATTEMPT.$2.log" 2>&1 </dev/null &
  ranks+=($!)
}

tell_end() { # who, exit status
  local how="exit status $2"
  (($2 > 128)) && how="killed by signal $(($2 - 128)) (exit status $2)"
  tell "$1: $how"
  exit "$2"
}

end_ranks() { # those too that were started this very moment
  end_groups "$grace_s" "${ranks[@]}" $(jobs -p)
}

own_groups() { # from here on, every process that is started is a group of its own, and TERM ends them all
  set -m
  trap 'end_ranks; exit 143' TERM
}

phase() { # name, number of ranks, command: the first rank that fails ends them all
  local name=$1 count=$2 rank status=0
  shift 2
  ranks=()
  for ((rank = 0; rank < count; rank++)); do start_rank "$name" "$rank" "$count" "$@"; done
  for ((rank = 0; rank < count && status == 0; rank++)); do wait -n || status=$?; done
  [ "$status" = 0 ] && return
  end_ranks
  tell_end "phase $name, a rank" "$status" # unless it told so itself
}

outside() { # phase, name, and so on: on the machine itself, out of the virtual environment
  local place=outside
  "$@"
}
