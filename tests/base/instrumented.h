// SPDX-License-Identifier: GPL-3.0-or-later
// Whether a sanitizer is active; timing and memory limits do not apply then.
#pragma once

namespace mw::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

}  // namespace mw::test
