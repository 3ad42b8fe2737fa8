#!/bin/sh
# Installs the compilers that only make test-langs needs: that of AssemblyScript, with the SDK, into .cache/languages, as
# docs/start/environment.md has a reader do it; of D and Nim as packages of Debian, where this user may.
set -eu
cd "$(dirname "$0")/.."
if ! { command -v ldc2 && command -v nim; } >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && apt-get install -y -qq --no-install-recommends ldc nim >/dev/null
  else
    echo 'languages: D and Nim are missing: apt-get install ldc nim' >&2
  fi
fi
mkdir -p .cache/languages
cd .cache/languages
[ -f package.json ] || echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund assemblyscript@0.28.20 ../../sdk/assemblyscript
