#!/usr/bin/env bash
job_id=contract
run_dir=/w/runs/contract
time_limit_s=600 grace_s=10
# environment PLACE: set the variables of the job, "inside" or "outside" its container or virtual environment.
environment() {
  export MODE='it'"'"'s'
}
__job_functions__
__script__
phase prepare 1 inside true
check_output prepare /w/runs/contract/data 0
phase train 2 inside env 'WORDS=a b'"'"'c"d $HOME' python train.py 'a b'"'"'c"d $HOME'