#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the Debian package in build/package and checks it.
#
#   scripts/package.sh             build/package/meshwright_VERSION_ARCH.deb
#   scripts/package.sh --check     besides, the audit tools: lintian, appstreamcli, desktop-file-validate, man, completions
#   scripts/package.sh --twice     besides, builds a copy of the sources in another folder and compares the hashes
#   scripts/package.sh --chroot    besides, installs, uses and removes the package in a clean Debian 12 (root only)
#
# Several options may be given. Every check prints its figures; the first that fails ends the script.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
for option in "$@"; do
  case "$option" in --check | --twice | --chroot) ;; *) say "unknown option $option; see --help"; exit 2 ;; esac
done
install build package
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)

# make_package FOLDER: builds the sources of FOLDER; prints the package's file name.
make_package() (
  root=$1
  build package >&2
  cd "$root/build/package"
  cpack --config CPackConfig.cmake >cpack.log 2>&1 || { cat cpack.log >&2; exit 1; }
  ls -t "$PWD"/meshwright_*.deb | head -n 1
)

check() {
  local tree=$root/build/package/tree
  rm -rf "$tree" && dpkg-deb -x "$deb" "$tree"
  say "== lintian"
  lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$deb"
  say "== appstreamcli validate"
  appstreamcli validate --no-net "$tree"/usr/share/metainfo/*.xml
  say "== desktop-file-validate"
  desktop-file-validate "$tree"/usr/share/applications/meshwright.desktop
  say "== man --warnings"
  local warnings
  warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$tree"/usr/share/man/man1/meshwright.1.gz 2>&1 >/dev/null)
  [ -z "$warnings" ] || { say "$warnings"; exit 1; }
  say "== completions"
  check_completions "$tree"/usr/share
  say "checked: $deb"
}

# Each shell parses its script; bash completes a command, an option and a key.
check_completions() {
  bash -c '
    source "$1"
    complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _meshwright 2>/dev/null; printf "%s\n" "${COMPREPLY[@]}"; }
    complete_words meshwright sea | grep -qx search &&
    complete_words meshwright plan --tar | grep -qx -- --target &&
    complete_words meshwright run x.json --set train.st | grep -qx train.steps= &&
    complete_words meshwright sweep --backend e | grep -qx engine' bash "$1/bash-completion/completions/meshwright"
  zsh -n "$1/zsh/vendor-completions/_meshwright"
  fish --no-execute "$1/fish/vendor_completions.d/meshwright.fish"
  fish --no-config -c "source $1/fish/vendor_completions.d/meshwright.fish; complete -C 'meshwright sea'" | grep '^search' >/dev/null
}

twice() {
  local copy hash other
  copy=$(mktemp -d)
  git -C "$root" ls-files -z --cached --others --exclude-standard | tar -C "$root" --null -T - -c | tar -C "$copy" -x
  other=$(CCACHE_DISABLE=1 make_package "$copy")
  hash=$(sha256sum <"$deb")
  say "first  $hash$deb"
  say "second $(sha256sum <"$other")$other"
  [ "$hash" = "$(sha256sum <"$other")" ] || { say "the two packages differ"; exit 1; }
  rm -rf "$copy"
}

in_chroot() { env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$clean" "$@"; }

# job NAME COMMAND...: commands of the manual in the clean system, and the time that they take.
job() {
  local name=$1 start=$SECONDS command
  shift
  for command in "$@"; do
    printf '$ %s\n' "$command" >>"$root/build/package/jobs.log"
    in_chroot sh -c "$command" >>"$root/build/package/jobs.log" 2>&1 || { tail -n 20 "$root/build/package/jobs.log" >&2; exit 1; }
  done
  say "job: $name: $# commands, $((SECONDS - start)) s"
}

# The three jobs that the program is for, with the package's examples.
three_jobs() {
  local examples=/usr/share/meshwright/examples
  : >"$root/build/package/jobs.log"
  job "design a mesh" "meshwright plan $examples/paper-train-v5p-8.json" \
    "meshwright plan $examples/paper-train-v5p-8.json --set mesh.tp=2 --set mesh.fsdp=2" \
    "meshwright search $examples/paper-train-v5p-8.json --top 5"
  job "fine-tune and ask" "meshwright run $examples/tiny-lora.json" \
    "meshwright generate $examples/tiny-lora.json --run-id latest --prompt 'What is the opposite of big?'" "meshwright runs"
  job "compare sweeps" "meshwright sweep $examples/paper-serve-v6e-8.json --backend model --runs-dir /tmp/sweeps" \
    "meshwright sweep $examples/paper-serve-2xh100.json --backend model --runs-dir /tmp/sweeps" \
    "meshwright compare run-1 run-2 --runs-dir /tmp/sweeps --out /tmp/sweeps.md"
}

# Starts the command of the desktop file on a display of its own and waits for the window.
start_from_desktop() {
  local command display=:$((90 + RANDOM % 100)) name
  command=$(sed -n 's/^Exec=\(.*\) %f$/\1/p' "$clean/usr/share/applications/meshwright.desktop")
  Xvfb "$display" -screen 0 1280x800x24 -nolisten tcp >/dev/null 2>&1 &
  processes+=($!)
  mkdir -p /tmp/.X11-unix "$clean/tmp/.X11-unix" && mount --bind /tmp/.X11-unix "$clean/tmp/.X11-unix"
  until DISPLAY=$display xdotool getmouselocation >/dev/null 2>&1; do kill -0 "${processes[-1]}" && sleep 0.2; done
  in_chroot env "DISPLAY=$display" $command >"$root/build/package/window.log" 2>&1 &
  processes+=($!)
  name=$(DISPLAY=$display timeout 60 xdotool search --sync --onlyvisible --name Meshwright getwindowname | head -n 1)
  [ -n "$name" ] || { cat "$root/build/package/window.log" >&2; exit 1; }
  say "window of the desktop file's command ($command): $name"
  end_processes
}
processes=()
end_processes() {
  [ ${#processes[@]} -eq 0 ] || kill "${processes[@]}" 2>/dev/null || true
  wait "${processes[@]}" 2>/dev/null || true
  processes=()
}
remove_clean() {
  end_processes
  umount "$clean/tmp/.X11-unix" "$clean/proc" 2>/dev/null || true
  mountpoint -q "$clean/tmp/.X11-unix" || mountpoint -q "$clean/proc" || rm -rf "$clean"
}

clean_debian() {
  clean=$(mktemp -d)
  trap remove_clean EXIT
  say "== debootstrap"
  debootstrap --variant=minbase bookworm "$clean" >"$root/build/package/debootstrap.log"
  cp /etc/resolv.conf "$clean/etc/"
  if [ -f /etc/apt/apt.conf.d/proxy ]; then cp /etc/apt/apt.conf.d/proxy "$clean/etc/apt/apt.conf.d/"; fi
  mount -t proc proc "$clean/proc"
  cp "$deb" "$clean/tmp/meshwright.deb"
  say "== install"
  in_chroot apt-get update -qq
  in_chroot apt-get install -y -qq --no-install-recommends /tmp/meshwright.deb >"$root/build/package/install.log" 2>&1
  say "== use"
  in_chroot meshwright --version
  three_jobs
  in_chroot env QT_QPA_PLATFORM=offscreen meshwright tour --out /tmp/tour >/dev/null
  say "pictures of the installed window: $(in_chroot ls /tmp/tour | wc -l)"
  start_from_desktop
  say "== remove"
  in_chroot apt-get purge -y -qq meshwright >/dev/null
  if in_chroot sh -c 'dpkg -L meshwright 2>/dev/null; find /usr /etc -name "*meshwright*"' | grep .; then
    say "files were left behind"; exit 1
  fi
  say "installed, used and removed in a clean Debian 12"
}

deb=$(make_package "$root")
say "$deb: $(du -h "$deb" | cut -f1), $(sha256sum "$deb" | cut -c1-16)"
for option in "$@"; do
  case "$option" in --check) check ;; --twice) twice ;; --chroot) clean_debian ;; esac
done
