#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what package-lock.json names into build/browser, and nothing else; quiet when it is there.
set -euo pipefail
cd "$(dirname "$0")"
into=../../build/browser
command -v npm >/dev/null || { echo "browser: npm is not installed: run tools/dev setup" >&2; exit 1; }
if cmp -s package-lock.json "$into/package-lock.json" && [ -e "$into/installed" ]; then
    exit 0
fi
mkdir -p "$into"
rm -f "$into/installed"
cp package.json package-lock.json .npmrc "$into/"
echo "browser: installing the packages of tests/browser/package-lock.json" >&2
if ! (cd "$into" && timeout 300 npm ci >npm.log 2>&1); then
    tail -20 "$into/npm.log" >&2
    echo "browser: npm could not install the packages: the browser tests cannot run without them" >&2
    exit 1
fi
touch "$into/installed"
