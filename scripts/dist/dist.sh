#!/usr/bin/env bash
# Makes the archives of a release in dist/, from what is committed and from nothing else. All is built twice, in two
# folders, and compared: who builds the same commit with the same Go gets the same bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."
sbom=$(realpath "${1:?usage: dist.sh CYCLONEDX-GOMOD}")

top=$(git rev-parse --show-toplevel 2>/dev/null) && [ "$top" = "$PWD" ] || {
  echo 'dist: this is no clone of the repository: version, commit and times of the archives are taken from git' >&2
  exit 1
}
commit=$(git rev-parse HEAD)
version=$(git describe --tags --always --match 'v[0-9]*' "$commit")
time=$(git log -1 --format=%ct "$commit")
[ -z "$(git status --porcelain)" ] || echo "dist: what is not committed is left out; this is $version"

# Settings of whoever builds must not show in what is built.
unset GOFLAGS GOEXPERIMENT GOAMD64 GOARM64 GOOS GOARCH
export CGO_ENABLED=0 LC_ALL=C TZ=UTC

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# programs FOLDER ARCH builds all four, as they are published.
programs() {
  GOARCH=$2 GOOS=linux go build -trimpath -buildvcs=true -ldflags '-s -w' -o "$1/" ./cmd/sluice ./cmd/sluice-agent
  GOARCH=$2 GOOS=linux go build -trimpath -buildvcs=true -ldflags '-s -w' -tags lambda.norpc -o "$1/functions/" ./functions/evaluate ./functions/reconcile
}

# papers FOLDER adds what one reads, and completion for three shells.
papers() {
  cp README.md SCOPE.md CHANGELOG.md "$1/"
  if compgen -G 'LICENSE*' >/dev/null; then cp LICENSE* "$1/"; fi
  cp -r docs "$1/docs"
  rm "$1/docs"/*.go
  go run ./scripts/licences -notices >"$1/LICENCES-OF-LIBRARIES.txt"
  mkdir "$1/completions"
  go run ./cmd/sluice completion bash >"$1/completions/sluice.bash"
  go run ./cmd/sluice completion zsh >"$1/completions/_sluice"
  go run ./cmd/sluice completion fish >"$1/completions/sluice.fish"
}

# release FOLDER clones into it and leaves archives in FOLDER/dist.
release() {
  git clone -q "$top" "$1/tree"
  git -C "$1/tree" -c advice.detachedHead=false checkout -q "$commit"
  mkdir "$1/dist" "$1/papers"
  cd "$1/tree"
  papers "$1/papers"
  for arch in amd64 arm64; do
    name=sluice_${version}_linux_$arch
    cp -r "$1/papers" "$1/$name"
    programs "$1/$name" "$arch"
    chmod -R u=rwX,go=rX "$1/$name"
    tar -C "$1" --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --format=ustar -cf - "$name" | gzip -n -9 >"$1/dist/$name.tar.gz"
  done
  "$sbom" mod -licenses -std -json -noserial -notimestamp -output "$1/dist/sluice_$version.cdx.json" .
  cd "$1/dist"
  sha256sum -- * >"$1/SHA256SUMS"
  mv "$1/SHA256SUMS" .
}

for try in one two; do
  mkdir "$work/$try"
  (release "$work/$try")
done
diff -r "$work/one/dist" "$work/two/dist" || {
  echo 'dist: two builds of one commit differ, so nobody could verify a release: nothing was made' >&2
  exit 1
}
rm -rf dist
mv "$work/one/dist" dist
cat dist/SHA256SUMS
