# shellcheck shell=bash
# Sourced by the scripts that promise to work on a fresh Debian or Ubuntu machine.
#
#   need_packages <package> | <command>=<package> ...
#     Installs the packages that are missing, as root or through sudo, and stops the script with a clear message
#     where it cannot. With <command>= in front, a command on the PATH counts as installed, wherever it came from.
#     Where nothing is missing it changes nothing and asks for nothing.
#   need_cmake
#     Makes `cmake` and `ctest` at least 3.25, through a private copy in build/tools where the system's is older.
#   need_nvdisasm
#     Where nvcc comes without its disassembler, puts one into build/tools/bin.

packages_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
packages_tools=$packages_root/build/tools
packages_updated=

packages_stop() {
  printf 'memfit: %s\n' "$@" >&2
  exit 3
}

packages_has() {
  local command=${1%%=*} package=${1#*=}
  if [ "$command" != "$1" ] && command -v "$command" >/dev/null 2>&1; then return 0; fi
  command -v dpkg-query >/dev/null 2>&1 &&
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed
}

# Speaks to apt; `as_root` is its caller's: empty, or sudo.
packages_install() {
  [ -n "$packages_updated" ] || "${as_root[@]}" apt-get update -qq || return
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@"
}

need_packages() {
  local want words missing=() as_root=()
  for want in "$@"; do
    packages_has "$want" || missing+=("${want#*=}")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ -n "${MEMFIT_SKIP_PACKAGES:-}" ]; then
    echo "memfit: going on without the packages ${missing[*]}, as MEMFIT_SKIP_PACKAGES asks" >&2
    return 0
  fi
  if ! command -v apt-get >/dev/null 2>&1; then
    packages_stop "this script installs packages on Debian and Ubuntu only, and these are missing: ${missing[*]}" \
      "install what corresponds to them here, then run it again with MEMFIT_SKIP_PACKAGES=1"
  fi
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      packages_stop "these packages are missing: ${missing[*]}" \
        "installing them needs root or sudo; as root: apt-get install ${missing[*]}"
    fi
    as_root=(sudo)
  fi
  echo "memfit: installing ${missing[*]}"
  if ! words=$(packages_install "${missing[@]}" 2>&1); then
    printf '%s\n' "$words" | tail -n 20 >&2
    packages_stop "could not install ${missing[*]}" \
      "as root: apt-get update && apt-get install ${missing[*]}"
  fi
  packages_updated=1
}

# Installs a Python package into build/tools.
packages_pip() {
  need_packages python3-venv
  if ! { python3 -m venv "$packages_tools" && "$packages_tools/bin/pip" install --quiet "$1"; }; then
    packages_stop "pip could not install $1 into build/tools"
  fi
}

packages_cmake_is_new() {
  local version
  version=$("$1" --version 2>/dev/null | awk 'NR == 1 { print $3 }') || return 1
  [ -n "$version" ] && [ "$(printf '3.25\n%s\n' "$version" | sort -V | head -n 1)" = 3.25 ]
}

need_cmake() {
  need_packages cmake=cmake
  if packages_cmake_is_new cmake; then return 0; fi
  if ! packages_cmake_is_new "$packages_tools/bin/cmake"; then
    echo "memfit: this system's CMake is older than 3.25; putting a newer one in build/tools"
    packages_pip 'cmake>=3.25,<4'
  fi
  PATH=$packages_tools/bin:$PATH
}

need_nvdisasm() {
  local nvcc found
  nvcc=$(command -v nvcc) || return 0
  if command -v nvdisasm >/dev/null || [ -x "${nvcc%/*}/nvdisasm" ] || [ -x "$packages_tools/bin/nvdisasm" ]; then
    return 0
  fi
  echo "memfit: nvcc has no nvdisasm beside it; putting one in build/tools"
  packages_pip nvidia-cuda-nvdisasm
  for found in "$packages_tools"/lib/python*/site-packages/nvidia/*/bin/nvdisasm; do
    ln -sf "$found" "$packages_tools/bin/nvdisasm"
  done
}
