# Functions that query jobs. They change no files except `missing` in a job's directory. Set above: ended_states.

sacct_limit_s=60 # a database that hangs counts as accounting that does not respond

# find_job_id ID DIRECTORY: print the id and, after a tab, the Slurm id of the job that was submitted there, if known.
find_job_id() {
  local job
  read_job_id "$2/job_id"
  [ -n "$job" ] || job=$(readlink "$2/claim")
  printf '%s\t%s\n' "$1" "$job"
}

# query_queue IDS: print the jobs with these Slurm ids, separated by commas, and all other jobs of the user that have
# not ended. Print all jobs if IDS is empty. The comment comes last, because a site may put any text there.
query_queue() {
  echo queue
  local fields='JobID:.0|,State:|,RestartCnt:|,exit_code:|,DerivedEC:|,Name:|,Partition:|'
  fields+=',Reason:|,TimeLeft:|,WorkDir:|,Comment:|'
  { echo "$1" && squeue --me -a -h -t all -O "$fields"; } | # an argument could not hold the ids of 15,000 jobs
    awk -F'|' -v ended="^($ended_states)\$" '
      NR == 1 { all = $0 == ""; count = split($0, ids, ","); for (i = 1; i <= count; i++) wanted[ids[i]]; next }
      all || $1 in wanted || $2 !~ ended'
  [ "${PIPESTATUS[*]}" = '0 0' ]
}

# read_job_files ID DIRECTORY [missing]: print id, claim, seconds missing, attempt and `ended`, separated by tabs.
# With "missing", the job is not in the queue. A job whose directory disappeared is missing for ever. If `missing` cannot
# be written, as on a full disk, the last change of the directory counts.
read_job_files() {
  local claim attempt='' ended='' since=0
  claim=$(readlink "$2/claim")
  { read -r attempt <"$2/attempt"; } 2>/dev/null
  { read -r ended <"$2/ended"; } 2>/dev/null
  if [ ! -d "$2" ]; then
    since=999999999
  elif [ -n "$3" ]; then
    [ -e "$2/missing" ] || touch -d "@$(date +%s)" "$2/missing" # the clock of a file server may differ
    since=$(($(date +%s) - $(stat -c %Y "$2/missing" || stat -c %Y "$2" || date +%s)))
  else
    rm -f "$2/missing"
  fi
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$claim" "$since" "$attempt" "$ended"
}

# query_accounting IDS: print "rows" and the output of sacct, or "disabled", or "unavailable". With -D, sacct prints all
# jobs that have had these ids, in ascending order, and all starts of a job.
query_accounting() {
  local output
  if ! command -v sacct >/dev/null; then
    echo disabled
  elif output=$(timeout "$sacct_limit_s" sacct -X -D -n -P -j "$1" \
    -o JobIDRaw,State,ExitCode,DerivedExitCode,Reason,JobName,Partition,WorkDir 2>&1); then
    printf 'rows\n%s\n' "$output"
  elif [[ $output == *disabled* ]]; then
    echo disabled
  else
    echo unavailable
  fi
}

# query_history IDS: print "rows" and one line for each start of these jobs, with its fields separated by tabs: Slurm id,
# name, state, start, end, the user who cancelled it, nodes, partition, QOS, the time for which it was suspended, and the
# directory where it was submitted. Start and end are in seconds since 1970. Print "disabled" or "unavailable" instead if
# there is no accounting.
query_history() {
  local output job name state start end nodes partition qos suspended folder user
  command -v sacct >/dev/null || { echo disabled; return; }
  if ! output=$(SLURM_TIME_FORMAT=%s timeout "$sacct_limit_s" sacct -X -D -n -P -j "$1" \
    -o JobIDRaw,JobName,State,Start,End,NodeList,Partition,QOS,Suspended,WorkDir 2>&1); then
    [[ $output == *disabled* ]] && echo disabled || echo unavailable
    return
  fi
  echo rows
  while IFS='|' read -r job name state start end nodes partition qos suspended folder; do
    user=''
    [[ $state != *' by '* ]] || user=$(id -nu "${state##* }" 2>/dev/null || echo "user ${state##* }")
    print_fields "$job" "$name" "${state%% *}" "$start" "$end" "$user" "$(host_names "$nodes")" "$partition" "$qos" \
      "$suspended" "$folder"
  done < <(echo "$output") # a here-document may need a file in /tmp, which may be full
}

# query_starts NODES SECONDS END...: print a line for each start of any user's job on these nodes, separated by commas,
# that was at most SECONDS after one of these ends, in ascending order. Its fields are separated by tabs: Slurm id,
# user, partition, QOS, start, nodes. Print nothing if accounting hides jobs of others, or does not respond before bash
# has run for $limit_s seconds, which is a limit for all calls together.
query_starts() {
  local names=$1 seconds=$2 from to job user partition qos start nodes end
  from=$(date -d "@$3" +%FT%T) to=$(date -d "@$((${!#} + seconds))" +%FT%T)
  shift 2
  ((SECONDS < limit_s)) || return 0
  SLURM_TIME_FORMAT=%s timeout "$((limit_s - SECONDS))" sacct -a -X -D -n -P -N "$names" -S "$from" -E "$to" \
    -o JobIDRaw,User,Partition,QOS,Start,NodeList 2>/dev/null |
    while IFS='|' read -r job user partition qos start nodes; do
      for end in "$@"; do
        if [[ $start =~ ^[0-9]+$ ]] && ((start >= end && start <= end + seconds)); then
          print_fields "$job" "$user" "$partition" "$qos" "$start" "$(host_names "$nodes")"
          break
        fi
      done
    done
}

# host_names NODES: print the names of nodes that Slurm lists as in node[1-4], separated by blanks.
host_names() {
  [ "$1" = 'None assigned' ] || # the start was given up before it had nodes
    scontrol show hostnames "$1" 2>/dev/null | paste -s -d ' ' -
}

# print_fields FIELD...: print fields separated by tabs.
print_fields() {
  local IFS=$'\t'
  printf '%s\n' "$*"
}
