#!/usr/bin/env bash
# Builds the pages as a site, .cache/docs/site, where they have changed since: make docs. The generator is installed into .cache/docs/venv. A link or an anchor that leads
# nowhere, and any other warning, fails it; so does a build of more than 20 s of a processor.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=.cache/docs/venv site=.cache/docs/site
mkdir -p .cache/docs
exec 9>.cache/docs/lock
flock 9
if [ -e $site/index.html ] && [ -z "$(find docs -newer $site/index.html -print -quit)" ]; then
  echo "open file://$PWD/$site/index.html"
  exit 0
fi
if ! cmp -s docs/site/requirements.txt "$venv/installed"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r docs/site/requirements.txt
  cp docs/site/requirements.txt "$venv/installed"
fi
said=$(ulimit -t 20 && "$venv/bin/mkdocs" build --strict --config-file docs/site/mkdocs.yml 2>&1) || { rm -rf $site; grep -v '^INFO' <<<"$said" >&2; exit 1; }
echo "open file://$PWD/$site/index.html"
