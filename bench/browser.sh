#!/bin/sh
# Installs the browser of make test-browser, Debian's Chromium, where it is missing and this user may.
set -eu
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
else
  echo 'Chromium is missing: apt-get install chromium' >&2
  exit 1
fi
