#!/usr/bin/env bash
# A tour of what exists: each step shows the command a user would type, then runs it.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMNIGRAPH_STORE="$work/world.omni"

step() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() {
  printf '$'
  for word in "$@"; do
    # In single quotes, so that what is shown can be typed: the shell must not see a $.
    case "$word" in *[' $']*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  printf '\n'
}
run() { show "$@"; "$@"; }
# A step that must fail: the tour shows how it is refused.
refused() { show "$@"; if "$@"; then echo "this should have been refused"; exit 1; fi; }

step "1. Create a graph from a schema"
run cat schema.pg
run omnigraph init --schema schema.pg --actor ada -m "a small world"

step "2. What it holds: one Lance table per type, each pinned at a version"
run omnigraph snapshot

step "3. Its history: one commit so far"
run omnigraph commit list

step "4. Queries are checked against the schema before anything runs"
run cat people.gq
run omnigraph lint people.gq
run omnigraph query neighbours --query people.gq --param city=Oslo
run omnigraph query circle --query people.gq --param name=Ada --json

step "5. Programs get JSON"
run omnigraph commit list --json

step "6. Mistakes get one clear message, and an exit code"
refused omnigraph init --schema schema.pg
refused omnigraph snapshot --branch mian
refused omnigraph query -e 'query q() { match { $p: Persn } return { $p.nam } }'

step "7. An init that is killed leaves nothing in the way"
export OMNIGRAPH_STORE="$work/killed.omni"
OMNIGRAPH_FAILPOINTS=init.after_stage=kill refused omnigraph init --schema schema.pg
refused omnigraph snapshot
run omnigraph init --schema schema.pg

printf '\nThat is what exists so far. Next: README.md, then docs/.\n'
