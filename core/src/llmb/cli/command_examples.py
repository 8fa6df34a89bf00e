"""The example of each command, which ends its help."""

EXAMPLES = {
    "run": "llmb run workload.toml --set workload.gpus=64 --dry-run",
    "validate": "llmb validate workload.toml",
    "attach": "llmb attach 3n4fr",
    "cancel": "llmb cancel 3n4fr",
    "runs": "llmb runs verdict=fail since=7d",
    "show": "llmb show 3n4fr",
    "logs": "llmb logs 3n4fr",
    "parse": "llmb parse train.log --framework maxtext --window 35:44",
    "grade": "llmb grade train.log --recipe maxtext/llama2-70b --gpu-type h100 \\\n    --dtype bf16 --gpus 64",
    "compare": "llmb compare 3n4fr k7x2p",
    "report": "llmb report 3n4fr k7x2p --junit verdicts.xml --csv runs.csv",
    "bundle": "llmb bundle 3n4fr k7x2p --redact --output acceptance.tar.gz",
    "metrics": "llmb metrics maxtext/llama2-70b --gpu-type h100 --dtype bf16 \\\n    --gpus 64 --step-time 7.1",
    "recipes": "llmb recipes --gpu-type h100 --dtype fp8 --with-baseline",
    "plugins": "llmb plugins",
    "new-plugin": "llmb new-plugin my_trainer --from train.log",
    "schema": "llmb schema --output llmb.schema.json",
    "doctor": "llmb doctor workload.toml",
    "help": "llmb help exit-codes",
}
"""An example of each command, by its name. ``3n4fr`` and ``k7x2p`` are the beginnings of run ids."""
