"""Pure arithmetic: FLOPs, metrics, measuring windows and verdicts."""
