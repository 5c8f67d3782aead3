# The command's ten lines. $1 runs it; needs nothing but a POSIX shell.
set -eu
vellum=$1 log=$(mktemp -d)/app.log
printf 'one\ntwo\nthree\n' | $vellum append --layout text --rotate-bytes 1M --retain-files 3 "$log"
printf 'four\n' | $vellum append --commit every "$log"
[ "$($vellum cat "$log")" = "$(printf 'one\ntwo\nthree\nfour')" ]
$vellum verify "$log"
$vellum stat --json "$log" | grep -q '"layout"'
printf 'a\nb\n' | $vellum append "$log.wal"
[ "$($vellum cat "$log.wal" | wc -l)" -eq 2 ]
$vellum --version
