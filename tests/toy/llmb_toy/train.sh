# A training that trains nothing: prints steps, waits at a gate, and ends as the environment defines.
phase=$1
note() { echo "$1 $LLMB_JOB_ID $phase.$RANK" >>"$TOY_JOURNAL"; }
exec {silent}<> <(:) # a pipe without data, to wait without starting `sleep` 50 times a second
wait_for() { until [ -e "$1" ]; do read -r -t 0.02 -u "$silent"; done; }

[ -z "$TOY_IGNORE_TERM" ] || trap '' TERM
[ -z "$TOY_DUMP" ] || env -0 >"$LLMB_RUN_DIR/env.$RANK"
[ -z "${TOY_TOKEN-}" ] || printf %s "$TOY_TOKEN" | sha256sum >"$LLMB_RUN_DIR/token.sha256"
note begin
[ -z "${TOY_WARNING-}" ] || echo "$TOY_WARNING"
for ((step = 0; step <= TOY_STEPS; step++)); do
  time=0.5
  [ "$step" != "$TOY_GARBLED_STEP" ] || time=0.50.5
  ((step == 0)) || echo "toy step $step time $time loss $([ "$step" = "$TOY_NAN_STEP" ] && echo nan || echo 2.5)"
  if [ "$step" = "$TOY_GATE_STEP" ] && [ -n "$TOY_GATE" ]; then wait_for "$TOY_GATE"; fi
  if [ "$step" = "$TOY_END_STEP" ] && [ "$RANK" = "$TOY_END_RANK" ]; then
    case $TOY_END in
      exit*) echo "toy: giving up" >&2 && exit "${TOY_END#exit }" ;;
      kill*) kill "-${TOY_END#kill }" $$ ;;
      python*) exec python3 -c "${TOY_END#python }" ;;
      memory) exec python3 -c 'hog = [bytearray(1 << 20) for _ in range(1 << 12)]' ;;
      leak) env && printf %s "${TOY_TOKEN:0:6}" && sleep 0.5 && printf '%s\nleaked\n' "${TOY_TOKEN:6}" ;;
      stop) break ;;
    esac
  fi
done
[ -z "$TOY_HANG" ] || wait_for "$LLMB_RUN_DIR/never"
[ "$TOY_WRITE_OUTPUT" != full ] || echo weights >"$TOY_OUTPUT"
[ "$TOY_WRITE_OUTPUT" != empty ] || : >"$TOY_OUTPUT"
note end
