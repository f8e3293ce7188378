#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a one-node Kubernetes from Debian's own source package into FOLDER/bin; nothing when it is there.
# About ten minutes on two processors and 2.5 GB while it builds, 250 MB after. JOBS=N: programs of the compiler at a time.
set -euo pipefail
folder=${1:?usage: build.sh FOLDER}
version=1.20.2
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
programs="kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy"
[ "$(cat "$folder/built" 2>/dev/null || true)" != "$version" ] || exit 0

say() { printf 'k8s: %4ds %s\n' "$SECONDS" "$*" >&2; }

say "fetching Debian's source of kubernetes $version"
mkdir -p "$folder/bin" "$folder/apt/lists/partial"
cd "$folder"
# The mirror that apt already uses; its package sources need not be in the system's lists.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' | awk '$2 == "bookworm" {print $1; exit}')
[ -n "$mirror" ] || { echo "k8s: apt knows no Debian 12 (bookworm) repository; this cluster is built from its source package" >&2; exit 69; }
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" >sources.list
own=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$folder/apt/lists")
apt-get "${own[@]}" update -qq
apt-get "${own[@]}" source --download-only -qq kubernetes

tree=$folder/go/src/k8s.io/kubernetes
rm -rf "$folder/go"
mkdir -p "$tree"
tar xzf kubernetes_*"$version".orig.tar.gz -C "$tree" --strip-components=1
cd "$tree"
# Without modules: the go.mod of that time is refused by the compiler of Debian 12.
export GO111MODULE=off GOPATH=$folder/go GOCACHE=$folder/cache GOPROXY=off CGO_ENABLED=0 GOFLAGS=-p=${JOBS:-2} GOROOT=/usr/lib/go-1.19 PATH=/usr/lib/go-1.19/bin:$PATH
sed -i "s/\"v0.0.0-master+[0-9a-f]*\"/\"v$version\"/" staging/src/k8s.io/component-base/version/base.go staging/src/k8s.io/client-go/pkg/version/base.go

say "making the one generated file that the source lacks"
go build -o "$folder/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
inputs=$(grep -rl --include='*.go' '+k8s:openapi-gen=' pkg cmd staging/src/k8s.io | grep -vE '/(code-generator|sample-apiserver|testdata)/' |
    xargs -n1 dirname | sort -u | sed -e 's#^staging/src/#k8s.io/kubernetes/vendor/#' -e 's#^\(pkg\|cmd\)#k8s.io/kubernetes/\1#' | paste -sd,)
"$folder/openapi-gen" --logtostderr -i "$inputs" -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi \
    -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -r "$folder/violations"

# Without the clients of cloud providers, which are half of it.
for program in $programs; do
    say "building $program"
    go build -tags providerless -ldflags '-s -w' -o "$folder/bin/" "k8s.io/kubernetes/cmd/$program"
done
chmod -R u+w "$folder/go" "$folder/cache"
rm -rf "$folder/go" "$folder/cache" "$folder/apt" "$folder/openapi-gen" "$folder/violations" "$folder"/kubernetes_*
echo "$version" >"$folder/built"
say "built"
