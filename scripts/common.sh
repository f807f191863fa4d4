# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by the other scripts: the repository's folder, installation of missing Debian packages, builds of a preset.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
say() { printf '%s\n' "$*" >&2; }

# install KIND...: installs the missing packages of these kinds in scripts/packages.txt, with sudo unless run as root.
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
  say "  from Debian's mirrors, once: usually one to three minutes"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# help_and_exit "$@": if the arguments contain --help or -h, prints the first comment of the script and exits.
help_and_exit() {
  local argument
  for argument in "$@"; do
    case "$argument" in -h | --help) sed -n '/^# SPDX/d; /^#!/d; /^#/!q; s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
  done
}

# minutes SECONDS: "less than a minute", "about 7 minutes".
minutes() { if [ "$1" -lt 60 ]; then echo "less than a minute"; else echo "about $((($1 + 59) / 60)) minutes"; fi; }

# progress LOG: copies ninja's output to LOG and prints the number of finished steps and the time left: one line that is
# updated on a terminal, a line per tenth elsewhere. Prints nothing if there is nothing to build.
progress() {
  local log=$1 line start=$SECONDS tenth=0 total=0 finished text
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    [[ $line =~ ^\[([1-9][0-9]*)/([0-9]+)\]\ (.*) ]] || continue
    [[ ${BASH_REMATCH[3]} == Re-* ]] && continue  # CMake re-checks globs at every start
    finished=${BASH_REMATCH[1]}
    if [ "$total" -eq 0 ]; then
      total=${BASH_REMATCH[2]}
      # A step takes 4 core seconds on average: a full build on two cores of an AMD EPYC took 10 minutes for 299 steps.
      say "Building: $total steps, $(minutes $((total * 4 / $(nproc)))) on $(nproc) cores"
    fi
    text="$finished of $total steps, $(minutes $(((SECONDS - start) * (total - finished) / finished))) left"
    if [ -t 2 ]; then
      printf '\r\033[K  %s' "$text" >&2
    elif [ $((finished * 10 / total)) -gt "$tenth" ]; then
      tenth=$((finished * 10 / total))
      say "  $text"
    fi
  done
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
}

# build PRESET [TARGET...]: configures (again, if the first target is not known: its libraries were not installed then),
# then builds what changed; prints nothing if there is nothing to do.
build() {
  local preset=$1; shift
  local folder="$root/build/$preset" log="$root/build/$preset.log"
  mkdir -p "$root/build"
  if [ ! -f "$folder/build.ninja" ] || { [ $# -gt 0 ] && ! ninja -C "$folder" -t query "$1" >/dev/null 2>&1; }; then
    [ -f "$folder/build.ninja" ] || say "First build of Meshwright in build/$preset: several minutes, shown step by step; later starts build only what changed"
    (cd "$root" && cmake --preset "$preset") >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
  fi
  : >"$log"
  ninja -C "$folder" "$@" 2>&1 | progress "$log" || { tail -n 60 "$log" >&2; exit 1; }
}
