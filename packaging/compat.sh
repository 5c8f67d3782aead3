#!/usr/bin/env bash
# Builds the command of an older revision below target/compat, and has both append to one log. compat.sh REVISION
. "$(dirname "$0")/common.sh"
revision=$(git rev-parse --short --verify "$1^{commit}")
sources=$TARGET/compat/$revision
# What was committed, without a work tree that git would have to know.
if [ ! -e "$sources/Cargo.toml" ]; then mkdir -p "$sources" && git archive "$revision" | tar -x -C "$sources"; fi

say "building revision $revision and this one"
(cd "$sources" && "$CARGO" build --quiet --locked --bin vellum --target-dir "$TARGET/compat/build")
cp "$TARGET/compat/build/debug/vellum" "$sources/vellum"
"$CARGO" build --quiet --bin vellum
"${PYTHON:-python3}" packaging/compat.py "$sources/vellum" "$TARGET/debug/vellum" "$revision"
