# read_job_id FILE: set `job` to the job id in the output of sbatch, or to "" if the file has none or is missing. The name
# of the cluster may follow the id. Other lines are messages of the site, which sbatch or a wrapper of it prints.
read_job_id() {
  local line
  job=''
  while read -r line; do
    [[ ! $line =~ ^([0-9]+)(;.*)?$ ]] || job=${BASH_REMATCH[1]}
  done <"$1"
} 2>/dev/null
