#!/bin/sh
# Puts the compiler of AssemblyScript into .cache/languages, with the SDK, as docs/start/environment.md has a reader install them.
set -eu
cd "$(dirname "$0")/.."
mkdir -p .cache/languages
cd .cache/languages
[ -f package.json ] || echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund assemblyscript@0.28.20 ../../sdk/assemblyscript
