#!/usr/bin/env bash
# Makes two targets at the same time: beside.sh LOG FIRST SECOND. What SECOND prints goes to LOG, and is printed
# when both have ended. When FIRST fails, or is interrupted, SECOND is stopped. It fails when one of them fails.
set -euo pipefail
log=$1 first=$2 second=$3
mkdir -p "$(dirname "$log")"
echo "make: $second runs beside $first; what it prints is in $log, and here at the end"
# With a process group of its own it can be stopped with all that it has started.
set -m
${MAKE:-make} --no-print-directory "$second" >"$log" 2>&1 &
group=$!
set +m
stop() { kill -- "-$group" 2>/dev/null || true; }
trap 'stop; exit 130' INT TERM
${MAKE:-make} --no-print-directory "$first" || {
  status=$?
  stop
  echo "make: $first failed; $second was stopped: $log" >&2
  exit "$status"
}
status=0
wait "$group" || status=$?
cat "$log"
[ "$status" -eq 0 ] || echo "make: $second failed" >&2
exit "$status"
