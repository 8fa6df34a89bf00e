# Waits for this job's turn on the machine, and for GPUs that no other run has. The kernel frees a lock when the last
# process that has it is gone; its file names the directory of the last job that had it.
# Set above: lock, max_parallel, machine_gpus (all of them), gpus_wanted.
. ./detached.sh # supervisor and settle

held=() descriptors=()
make_for_all() { # file: other users take turns by it as well
  [ -e "$1" ] || (umask 0 && : >>"$1")
  [ -w "$1" ] && return
  tell "the lock $1 cannot be written; see target.lock"
  exit 1
}

hold() { # file, options of flock: how long to wait
  local descriptor
  make_for_all "$1"
  exec {descriptor}>>"$1" || exit 1
  if flock "${@:2}" "$descriptor"; then held+=("$1") && descriptors+=("$descriptor") && return; fi
  exec {descriptor}>&-
  return 1
}

without_locks() { # command: of which a process may outlive the job
  local descriptor
  for descriptor in "${descriptors[@]}"; do exec {descriptor}>&-; done
  exec "$@"
}

is_held() { # file
  local each
  for each in "${held[@]}"; do [ "$each" != "$1" ] || return 0; done
  return 1
}

take() { # how many, files: the locks of that many of them
  local wanted=$1 file patience=(-n)
  shift
  (($# > wanted)) || patience=(-w 3) # there is nothing to choose
  until
    for file; do
      ((wanted == 0)) || is_held "$file" || ! hold "$file" "${patience[@]}" || ((wanted -= 1))
    done
    ((wanted == 0))
  do
    end_orphans "$@"
    sleep 0.2
  done
}

next_look_s=0
end_orphans() { # files: of a job that has one of these locks and whose supervisor was killed, nobody may ask any more
  local file before
  ((SECONDS >= next_look_s)) || return
  next_look_s=$((SECONDS + 3))
  for file; do
    { read -r before <"$file"; } 2>/dev/null || continue
    [ -O "$before/started" ] && ! [ -e "$before/ended" ] && ! supervisor "$before" >/dev/null || continue
    # none can be seen of a job in another container, whose supervisor only seems to be gone
    ! grep -qzxF "LLMB_RUN_DIR=$before" /proc/[0-9]*/environ 2>/dev/null || settle "$before"
  done
}

turn=1 in_line=''
arrive() { # take the number after the highest that is out: a file, locked as long as this job is in line
  local queue file
  let_the_one_before_arrive
  make_for_all "$lock.queue"
  exec {queue}>>"$lock.queue" && flock "$queue" || exit 1
  for file in "$lock".turn-*; do
    [ ! -e "$file" ] || ((${file##*-} < turn)) || turn=$((${file##*-} + 1))
  done
  make_for_all "$lock.turn-$turn"
  exec {in_line}>>"$lock.turn-$turn" && flock "$in_line" || exit 1
  exec {queue}>&-
  echo yes >arriving
  exec 7>&-
}

let_the_one_before_arrive() { # of those that were submitted at once; of one that never arrives, the one before that
  local before=.
  while read -r before <"$before/after" && [ -n "$before" ]; do
    flock -w 60 -s "$before/submit" true && flock -w 60 -s "$before/arriving" true # until it lives, and is in line
    [ ! -s "$before/arriving" ] || return
  done 2>/dev/null
}

wait_in_line() { # whoever comes first is served first, however many GPUs it needs
  local other
  for ((other = turn - 1; other > 0; other--)); do
    [ ! -e "$lock.turn-$other" ] || { flock -s "$lock.turn-$other" true && rm -f "$lock.turn-$other"; } || exit 1
  done
}

places=("$lock")
for ((place = 1; place < max_parallel; place++)); do places+=("$lock.$place"); done
mkdir -p "$(dirname "$lock")"
arrive
wait_in_line
take 1 "${places[@]}"
take "$gpus_wanted" "${machine_gpus[@]/#/$lock.gpu-}"
rm -f "$lock.turn-$turn"
exec {in_line}>&-

gpus=''
for file in "${held[@]}"; do
  [[ $file != "$lock".gpu-* ]] || gpus+=${gpus:+,}${file#"$lock.gpu-"}
  if { read -r before <"$file"; } 2>/dev/null; then end_container_of "$before" || exit 1; fi
  echo "$LLMB_RUN_DIR" >"$file"
done
: >begun
