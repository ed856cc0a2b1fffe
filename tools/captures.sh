#!/bin/sh
# Runs every verb of the command line on a database that it fills, and writes what a person sees to docs/captures/.
#   tools/captures.sh                    SQLite
#   tools/captures.sh postgresql://...   that Postgres, an empty database; the file is named after the backend
set -eu
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH" COLUMNS=110 NO_COLOR=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
WORKFLOW_ADAPTERS_URL=${1:-sqlite:///$scratch/captures.db}
export WORKFLOW_ADAPTERS_URL
case $WORKFLOW_ADAPTERS_URL in sqlite*) backend=sqlite ;; *) backend=postgres ;; esac
out=docs/captures/command-line-$backend.txt
mkdir -p docs/captures

show() {
    printf '$ workflow-adapters %s\n' "$*"
    workflow-adapters "$@" 2>&1 || printf '(exit code %s)\n' "$?"
    echo
}

first() { workflow-adapters "$@" --json | python -c 'import json, sys; print(json.load(sys.stdin)["items"][0]["id"])'; }

{
    echo "# made by tools/captures.sh"
    echo
    show --help
    show check
    show migrate --plan | head -n 12
    echo "..."
    echo
    show migrate
    show check
    python tools/fill_for_captures.py
    show status
    show status --json
    show runs list
    show runs show order-1
    show jobs list
    job=$(first jobs list --status FAILED)
    show jobs show "$job"
    show jobs requeue "$job"
    show jobs requeue "$job"
    show jobs cancel "$job"
    show outbox dlq list
    show outbox dlq replay
    show outbox release some-event-id
    show ai-calls stats orders/
    show purge --older-than 0s
    show purge --older-than 0s --all --dry-run
    show purge --older-than 0s --only jobs --only runs
    show purge --older-than soon --all
    timeout -s INT 8 workflow-adapters status --watch --every 1 > "$scratch/watch" 2>&1 || true
    echo '$ timeout -s INT 8 workflow-adapters status --watch --every 1'
    cat "$scratch/watch"
} > "$out"
echo "$out"
