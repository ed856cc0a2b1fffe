#!/bin/sh
# Prints the path of a Python that this project runs on.
#
#   find-python.sh           python3 where that is 3.11 or newer, else the newest of 3.11 to 3.13
#   find-python.sh VERSION   that one; exits 1 where the machine has none
set -eu

is_version() {
    "$1" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$2')" 2>/dev/null
}

# A version manager's pythonX.Y may be a stub that fails until a version is chosen, so every candidate is run.
candidates() {
    command -v "python$1" || true
    if command -v uv >/dev/null; then uv python find --no-project "$1" 2>/dev/null || true; fi
    if command -v pyenv >/dev/null; then
        pyenv versions --bare | grep -E "^$1\.[0-9]+\$" | while read -r release; do
            echo "$(pyenv prefix "$release")/bin/python"
        done
    fi
}

find_version() {
    candidates "$1" | while read -r python; do
        if is_version "$python" "$1"; then
            "$python" -c 'import sys; print(sys.executable)'
            break
        fi
    done
}

if [ $# -gt 0 ]; then
    found=$(find_version "$1")
elif python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    found=$(python3 -c 'import sys; print(sys.executable)')
else
    found=
    for version in 3.13 3.12 3.11; do
        found=${found:-$(find_version "$version")}
    done
fi
[ -n "$found" ] || { echo "No Python ${1:-3.11 or newer} here. On Debian 12 or newer: sudo apt-get install -y python3 python3-venv" >&2; exit 1; }
echo "$found"
