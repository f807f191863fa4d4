// SPDX-License-Identifier: Apache-2.0
// The shipped hardware, read once for all tests of a program.
#pragma once
#include "core/hardware/catalogue.h"

namespace mw::test {

inline const hardware::Catalogue& catalogue() {
  static const hardware::Catalogue kShipped = hardware::Catalogue::load(MW_RESOURCES "/hardware");
  return kShipped;
}

}  // namespace mw::test
