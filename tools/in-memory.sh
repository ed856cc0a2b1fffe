#!/bin/sh
# Runs a command with its temporary files in memory, where there is room, and removes them when it has ended.
#
#   in-memory.sh COMMAND [ARGUMENT...]
#
# The tests make some two thousand databases of three hundred files each; on a disk that can take most of their time.
# Whoever has named a directory for temporary files keeps it.
set -eu

memory=/dev/shm
prefix=$memory/wa-tests # short: the path of a socket may have 107 characters
needed_kilobytes=4000000

has_room() {
    [ "$(stat -f -c %T "$memory" 2>/dev/null)" = tmpfs ] && [ -w "$memory" ] || return 1
    free=$(df -Pk "$memory" | awk 'NR == 2 { print $4 }')
    unused=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
    [ "$free" -ge "$needed_kilobytes" ] && [ "$unused" -ge "$needed_kilobytes" ]
}

# Programs of throwaway servers may be copied there, and some machines run nothing from there.
can_run_programs() {
    printf '#!/bin/sh\n' >"$1/program" && chmod 755 "$1/program" && "$1/program" 2>/dev/null && rm "$1/program"
}

# Those of commands that were killed together with what waits for them below.
remove_abandoned() {
    for directory in "$prefix".*; do
        owner=${directory#"$prefix".}
        if [ -O "$directory" ] && ! kill -0 "${owner%%.*}" 2>/dev/null; then rm -rf "$directory"; fi
    done
}

# The command takes this shell's place, so whatever is sent to it reaches it; somebody else waits for its end. Servers
# that it leaves behind, killed, are first ended by their watchdogs, which find them by their directories.
remove_after_the_end_of() {
    trap '' INT TERM HUP
    while kill -0 "$1" 2>/dev/null; do sleep 1; done
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        ls -d "$2"/workflow-adapters-run-* >/dev/null 2>&1 || break
        sleep 1
    done
    rm -rf "$2"
}

# /tmp is what everybody has who has chosen none.
if [ "${TMPDIR:-/tmp}" = /tmp ] && [ -z "${TEMP:-}${TMP:-}" ] && has_room; then
    remove_abandoned
    directory=$(mktemp -d "$prefix.$$.XXXXXX")
    # Throwaway servers of root's run under another account.
    chmod 711 "$directory"
    if can_run_programs "$directory"; then
        export TMPDIR="$directory"
        # Its parent ends at once: the command must not find a child that it knows nothing of. Redirected by exec, it holds
        # nobody's pipe: for a single command the shell would keep the old ones open.
        (
            exec </dev/null >/dev/null 2>&1
            remove_after_the_end_of "$$" "$directory" &
        )
    else
        rm -rf "$directory"
    fi
fi
exec "$@"
