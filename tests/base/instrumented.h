// SPDX-License-Identifier: GPL-3.0-or-later
// Built with a sanitizer: times and the process' memory say nothing.
#pragma once

namespace mw::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

// Milliseconds to wait at most for what takes `ms` without a sanitizer.
constexpr int patience(int ms) {
  return kInstrumented ? 5 * ms : ms;
}

}  // namespace mw::test
