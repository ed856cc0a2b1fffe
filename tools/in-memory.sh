#!/bin/sh
# Runs a command with its temporary files in memory, where there is room, and removes them when it has ended.
#
#   in-memory.sh COMMAND [ARGUMENT...]
#
# The tests make some two thousand databases of three hundred files each; on a disk that can take most of their time.
set -eu

memory=/dev/shm
needed_kilobytes=4000000

available() {
    df -Pk "$memory" 2>/dev/null | awk 'NR == 2 && $1 == "tmpfs" { print $4 }'
}

kilobytes=$(available)
if [ -n "${TMPDIR:-}" ] || [ "${kilobytes:-0}" -lt "$needed_kilobytes" ]; then
    exec "$@"
fi
TMPDIR=$(mktemp -d "$memory/workflow-adapters-tests.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
# Throwaway servers of root's run under another account.
chmod 711 "$TMPDIR"
# What ends the command early is sent to it as well; this waits for it.
trap : INT TERM HUP
"$@"
