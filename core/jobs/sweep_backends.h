// SPDX-License-Identifier: Apache-2.0
// From the document to who serves: the engine with its model, the cost model of the target, or a server over HTTP.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/base/event.h"
#include "core/experiment/experiment.h"
#include "core/hardware/catalogue.h"
#include "core/serve/load/sweep.h"

namespace mw::jobs {

struct BackendParts {
  std::shared_ptr<void> owned{};  // what the backend works with; dies after it
  std::unique_ptr<serve::LoadBackend> backend{};
  std::map<std::string, std::string> conditions{};  // found out on the way: what the server says of itself
  std::vector<std::string> notes{};
};
using EmitBody = std::function<void(std::variant<event::Progress, event::Memory, event::Log>)>;

// Throws Error for a document that names no server, no model, or one that does not fit.
BackendParts make_backend(const experiment::Experiment& experiment, const hardware::Catalogue& catalogue,
                          const EmitBody& emit);

}  // namespace mw::jobs
