// SPDX-License-Identifier: Apache-2.0
#include "core/base/ledger.h"

namespace mw {
Bytes Ledger::total() const {
  Bytes sum;
  for (const Bytes b : bytes) sum += b;
  return sum;
}

}  // namespace mw
