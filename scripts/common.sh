# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by run.sh and test.sh: the repo's folder, missing Debian packages, building a preset.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
say() { printf '%s\n' "$*" >&2; }

# install KIND...: installs what is missing of those kinds of scripts/packages.txt, with sudo when not root.
install() {
  local kinds missing=() package
  kinds=$(IFS='|'; echo "$*")
  for package in $(sed -nE "s/^($kinds): //p" "$root/scripts/packages.txt"); do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "Please install: ${missing[*]} (you are not root and there is no sudo)"; exit 1; }
    as_root=(sudo)
    say "Installing with sudo: ${missing[*]}"
  else
    say "Installing: ${missing[*]}"
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# build PRESET [TARGET...]: configures once, then only builds what changed; quiet when there is nothing to do.
build() {
  local preset=$1; shift
  local folder="$root/build/$preset" log="$root/build/$preset.log"
  mkdir -p "$root/build"
  [ -f "$folder/build.ninja" ] || { say "Configuring $preset"; (cd "$root" && cmake --preset "$preset") >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; }
  if ! ninja -C "$folder" -n "$@" 2>/dev/null | grep -q 'no work to do'; then
    say "Building $preset (the first time takes some minutes)"
    cmake --build "$folder" ${1:+--target "$@"} >"$log" 2>&1 || { tail -n 60 "$log" >&2; exit 1; }
  fi
}
