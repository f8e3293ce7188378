#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what package-lock.json names into build/npm, and nothing else; quiet when it is there.
set -euo pipefail
cd "$(dirname "$0")"
into=../../build/npm
command -v npm >/dev/null || { echo "npm is not installed: run tools/dev setup" >&2; exit 1; }
if cmp -s package-lock.json "$into/package-lock.json" && [ -e "$into/installed" ]; then
    exit 0
fi
mkdir -p "$into"
rm -f "$into/installed"
cp package.json package-lock.json .npmrc "$into/"
echo "npm: installing the packages of tools/npm/package-lock.json" >&2
if ! (cd "$into" && timeout 300 npm ci >npm.log 2>&1); then
    tail -20 "$into/npm.log" >&2
    echo "npm could not install the packages: the tests of the page and of the chart cannot run without them" >&2
    exit 1
fi
touch "$into/installed"
