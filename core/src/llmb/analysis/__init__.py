"""Pure arithmetic: FLOPs, metrics, measuring windows, endings and verdicts."""
