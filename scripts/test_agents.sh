#!/bin/sh
# test_agents.sh [--built]: runs the published packages of agents in a sandbox, Claude Code and Codex with a scripted model.
# They are installed once, in build/agents, and run in network namespaces without external access. Exits 1 if a test
# failed.
# --built: build/caisson, build/caisson-mcp and build/caisson-broker exist already.
set -eu
. "$(dirname -- "$0")/lib.sh"
if [ "${1:-}" != --built ]; then sh "$root/scripts/build.sh" release caisson caisson-mcp; fi
packages=$root/build/agents
mkdir -p "$packages"
if ! command -v npm >/dev/null 2>&1; then
  CAISSON_LOG_FILE=$packages/dependencies.log sh "$root/scripts/install_dependencies.sh" --optional clients
fi
command -v npm >/dev/null 2>&1 || die "npm is missing; install the packages nodejs and npm"
if ! cmp -s "$root/tests/agents/package.json" "$packages/.installed.json"; then
  say "installing the agents (npm)"
  cp "$root/tests/agents/package.json" "$packages/"
  (cd "$packages" && timeout 500 npm install --no-save --no-audit --no-fund --loglevel=error --fetch-retries=1 \
    --fetch-timeout=60000 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000 >install.log 2>&1) || {
    tail -n 20 "$packages/install.log" >&2
    die "npm could not install the agents; is its registry reachable?"
  }
  # npm may not run install scripts without consent; this one only installs the binary.
  (cd "$packages/node_modules/@anthropic-ai/claude-code" && node install.cjs >>"$packages/install.log" 2>&1)
  cp "$packages/package.json" "$packages/.installed.json"
fi
export CAISSON_BIN="$root/build/caisson" CAISSON_AGENT_PACKAGES="$packages"
failed=
for suite in shell_tool whole_agent published; do
  say "$suite"
  timeout 500 python3 "$root/tests/agents/${suite}_test.py" -v || failed=1
done
[ -z "$failed" ] || exit 1
