// SPDX-License-Identifier: Apache-2.0
#include "core/base/processor_time.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <string>

namespace mw {

ProcessorTime processor_time() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen)) return {};
  timespec own{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double seconds = static_cast<double>(own.tv_sec) + 1e-9 * static_cast<double>(own.tv_nsec);
  return {seconds, (user + nice + system + interrupts + soft + stolen) * tick - seconds, (idle + waiting) * tick};
}

double share_of_others(const ProcessorTime& before, const ProcessorTime& after) {
  const double own = after.own - before.own, others = std::max(0.0, after.others - before.others),
               idle = after.idle - before.idle;
  return own > 0 && idle < 0.1 * (own + others + idle) ? others / own : 0;
}

}  // namespace mw
