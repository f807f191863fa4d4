#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Cross-compiles the engine for ARM64 with Debian's compiler and runs its unit tests under qemu-user.
#   scripts/arm64.sh [GTEST_FILTER]    # default: all tests of tests/engine, slow under emulation
#   MESHWRIGHT_CPU=neon scripts/arm64.sh '*Packed*'    # one class of kernels: neon, neon_dotprod, neon_bf16, base
# The ARM64 libraries are Debian packages that are unpacked into build/arm64/sysroot and not installed. Under emulation
# only results are tested: its speed says nothing about a processor.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
install build test arm64
folder="$root/build/arm64"
sysroot="$folder/sysroot"
# Libraries that core and its tests are linked with; Qt and fonts are not needed.
packages=(libc6-dev libstdc++-12-dev
  $(sed -nE 's/^(build|test): (lib.*-dev|nlohmann-json3-dev|libsentencepiece0)$/\2/p' "$root/scripts/packages.txt" |
    grep -vE 'libgl-|libqt|libbenchmark'))
if [ ! -f "$folder/ready" ]; then
  say "Unpacking ARM64 libraries into build/arm64/sysroot"
  # apt with a state of its own resolves the dependencies and changes nothing of this system.
  apt="$folder/apt"
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$sysroot"
  : >"$apt/status"
  options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$apt/state"
    -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update
  apt-get "${options[@]}" install -y --no-install-recommends --download-only "${packages[@]}" >/dev/null
  for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
  rm -r "$apt"
  touch "$folder/ready"
fi
if [ ! -f "$folder/release/build.ninja" ]; then
  cmake -S "$root" --preset release -DMW_TESTS=ON -B "$folder/release" -DCMAKE_TOOLCHAIN_FILE="$root/scripts/arm64.cmake" -DMW_SYSROOT="$sysroot" \
    -DMW_UI=OFF -DMW_BENCHMARKS=OFF >"$folder/configure.log" 2>&1 || { cat "$folder/configure.log" >&2; exit 1; }
fi
build arm64/release mw_engine_tests
say "Running the engine's tests under qemu-user"
exec qemu-aarch64 -L "$sysroot" "$folder/release/tests/mw_engine_tests" --gtest_filter="${1:-*}"
