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

step "2. Write: one commit each, all of it or nothing"
run cat people.gq
export OMNIGRAPH_ACTOR=ada
run omnigraph mutate settle -q people.gq -p name=Ada -p born=1815-12-10 -p city=Oslo
run omnigraph mutate settle -q people.gq -p name=Bob -p city=Oslo -m "a neighbour"

step "3. Ask"
run omnigraph query neighbours -q people.gq -p city=Oslo

step "4. A write that breaks a rule of the schema is refused, with all that is wrong"
refused omnigraph mutate -e 'query q() { insert City { name: "Rome" people: -1 } insert LivesIn { from: "Ada" to: "Rome" } }'
refused omnigraph mutate -e 'query q() { insert Persn { name: "Eva" } }'

step "5. A branch: main does not see what is written there"
run omnigraph branch create draft
run omnigraph mutate --branch draft -e 'query q() { delete Person where name = "Bob" }'
run omnigraph query neighbours -q people.gq -p city=Oslo --branch draft
run omnigraph query neighbours -q people.gq -p city=Oslo

step "6. Indexes are built when it suits; writes never wait for them"
run omnigraph index

step "7. A writer is killed after it has moved one table of three"
refused env OMNIGRAPH_FAILPOINTS=write.after_each_apply=kill omnigraph mutate settle -q people.gq -p name=Eva -p city=Rome
run omnigraph recovery list

step "8. The next write brings it to an end: nothing of it is left"
run omnigraph mutate settle -q people.gq -p name=Cy -p city=Rome
run omnigraph recovery list
run omnigraph query neighbours -q people.gq -p city=Rome --json

step "9. History: who, what, why; every commit can be read again"
run omnigraph commit list

printf '\nNext: README.md, then docs/.\n'
