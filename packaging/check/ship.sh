# vellum-ship beside the command: a log is shipped to a directory, read there and restored. $1 runs the command.
set -eu
vellum=$1 dir=$(mktemp -d)
printf 'one\ntwo\n' | $vellum append --commit end "$dir/log"
mkdir "$dir/store"
$vellum ship --once "$dir/log" "file://$dir/store"
[ "$($vellum cat "file://$dir/store")" = "$(printf 'one\ntwo')" ]
$vellum restore "file://$dir/store" "$dir/restored"
[ "$($vellum cat "$dir/restored")" = "$(printf 'one\ntwo')" ]
