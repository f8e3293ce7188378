#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup.sh compile|build|test|image|cluster: installs the Debian packages of tools/packages.txt that are missing, and nothing else.
# Packaged servers are not started and leave no cluster of their own behind.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/progress.sh

command -v apt-get >/dev/null || { echo "setup: this is no Debian: Debian 12 is what is built and tested on, a virtual machine or a container of it will do" >&2; exit 1; }

wanted() { # the packages of the sections up to and including the one asked for
    awk -v upto="[$1]" '/^\[/ { if (last) exit; last = $0 == upto; next }
        !/^#|^$/' tools/packages.txt
}

missing() {
    local package
    for package in $(wanted "$1"); do
        [ "$package" = npm ] && command -v npm >/dev/null && continue # some packages of Node bring it
        dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || echo "$package"
    done
}

need=$(missing "${1:-build}")
[ -n "$need" ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup: these packages are missing and this user cannot install them:" $need >&2; exit 1; }
    as_root=(sudo)
fi
doing="setup: installing $(echo "$need" | wc -l) packages"
[ -t 2 ] || echo "$doing" >&2
log=$(mktemp)
policy=/usr/sbin/policy-rc.d
had_policy=1
[ -e "$policy" ] || had_policy=0
clusters_before=$(ls /etc/postgresql 2>/dev/null || true)
restore() {
    [ "$had_policy" = 1 ] || "${as_root[@]}" rm -f "$policy"
    rm -f "$log"
}
trap restore EXIT
if [ "$had_policy" = 0 ]; then # forbid packages to start their services while we install
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
fi
install() {
    # shellcheck disable=SC2086
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $need 2>&1 |
        told_on_terminal "$doing" '^(Get:[0-9]+|Unpacking [^ ]+|Setting up [^ ]+)' >"$log"
}
"${as_root[@]}" apt-get update >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
install || { cat "$log" >&2; echo "setup: apt-get could not install the packages above" >&2; exit 1; }
for version in $(ls /etc/postgresql 2>/dev/null || true); do # drop the cluster the package made for itself, if we caused it
    case " $clusters_before " in
    *" $version "* | *$'\n'"$version"$'\n'*) ;;
    *) "${as_root[@]}" pg_dropcluster --stop "$version" main >/dev/null 2>&1 || true ;;
    esac
done
