#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# collect.sh FOLDER PROGRAM...: a root file system of these programs and what they load. Of every package that gives something its
# licence and its dpkg entry come along, where scanners of images look for them.
set -euo pipefail
root=$1
shift
install -d -m 755 "$root/usr/bin" "$root/etc/ssl/certs" "$root/var/lib/dpkg/status.d" "$root/usr/share/doc"
install -d -m 1777 "$root/tmp"
for directory in bin lib lib64; do # as Debian has it: one /usr
    mkdir -p "$root/usr/$directory"
    ln -s "usr/$directory" "$root/$directory"
done
echo 'tidegate:x:65532:65532:Tidegate:/:/usr/sbin/nologin' >"$root/etc/passwd"
echo 'tidegate:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
cp /etc/os-release "$root/etc/os-release"

for program in "$@"; do
    install -s -m 755 "$program" "$root/usr/bin/"
done
ldd "$@" | grep -oE '/[^ ]+' | grep -v ':$' | sort -u | while read -r library; do
    target=$(realpath "$library")
    install -D -m 755 "$target" "$root/usr/${library#/usr/}" # under the name it is loaded by
    echo "$target"
done | sort -u | while read -r file; do
    { dpkg-query -S "$file" "${file#/usr}" 2>/dev/null || true; } | cut -d: -f1
done | sort -u | while read -r package; do
    dpkg-query -s "$package" >"$root/var/lib/dpkg/status.d/$package"
    install -D -m 644 "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
done
