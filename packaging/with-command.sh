#!/usr/bin/env bash
# Runs what builds a wheel, with the command `vellum` among the files of the package.
# with-command.sh BINARY PROGRAM [ARGUMENT]...
set -euo pipefail
package=$(dirname "${BASH_SOURCE[0]}")/../crates/vellum-python/python/vellum_log
trap 'rm -rf "$package/bin"' EXIT
install -D -m 755 "$1" "$package/bin/vellum"
# What was built for another machine has no symbols.
strip "$package/bin/vellum" 2>/dev/null || true
shift
"$@"
