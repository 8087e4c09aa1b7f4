#!/usr/bin/env bash
# A tour of what exists: each step shows the command a user would type, then runs it.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp schema.pg people.gq "$work"
cd "$work"
export OMNIGRAPH_STORE=world.omni

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

step "2. Load a file: nodes and edges in any order, in one commit"
cat > people.jsonl <<'END'
{"edge": "LivesIn", "from": "Bob", "to": "Oslo"}
{"edge": "Knows", "from": "Bob", "to": "Eva", "data": {"since": "2024-01-31"}}
{"type": "Person", "data": {"name": "Bob", "born": "1990-05-05"}}
{"type": "Person", "data": {"name": "Eva", "mood": "sunny"}}
{"type": "City", "data": {"name": "Oslo", "people": 709000}}
END
run cat people.jsonl
export OMNIGRAPH_ACTOR=ada
run omnigraph load --data people.jsonl --mode append -m "the first ones"

step "3. Write with a query, and ask"
run cat people.gq
run omnigraph mutate settle -q people.gq -p name=Ada -p born=1815-12-10 -p city=Oslo
run omnigraph query neighbours -q people.gq -p city=Oslo

step "4. What breaks a rule of the schema is refused, with all that is wrong and where"
refused omnigraph load --data people.jsonl --mode append
refused omnigraph mutate -e 'query q() { insert Persn { name: "Cy" } }'

step "5. A branch: main does not see what is written there"
run omnigraph branch create draft
run omnigraph mutate --branch draft -e 'query q() { update Person set { mood: "sunny"  born: null } where name = "Bob" }'
run omnigraph mutate -e 'query q() { update Person set { mood: "cloudy" } where name = "Bob" }'
run omnigraph diff main draft --rows

step "6. Merge: both changed Bob, and one thing of him to different values"
refused omnigraph branch merge draft
run omnigraph branch merge draft --resolve theirs --delete-branch

step "7. A writer is killed after it has moved one table of three"
refused env OMNIGRAPH_FAILPOINTS=write.after_each_apply=kill omnigraph mutate settle -q people.gq -p name=Dee -p city=Rome
run omnigraph recovery list

step "8. The next write brings it to an end: nothing of it is left"
run omnigraph mutate settle -q people.gq -p name=Cy -p city=Rome
run omnigraph recovery list
run omnigraph query neighbours -q people.gq -p city=Rome --json

step "9. History: who, what, why; every commit can be read again, and all rows be had as files"
run omnigraph commit list
run omnigraph export - --type Person

printf '\nNext: README.md, then docs/.\n'
