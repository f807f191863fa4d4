// SPDX-License-Identifier: Apache-2.0
#include "core/train/traffic.h"

#include <map>
#include <tuple>

namespace mw::train {

event::Traffic traffic_of(const engine::Cluster& cluster, long step) {
  event::Traffic out{.step = step, .entries = {}, .devices = {}};
  const int devices = cluster.devices();
  using Key = std::tuple<mesh::Phase, int, std::string, mesh::CollectiveKind, mesh::Cause>;
  std::map<Key, event::Traffic::Entry> entries;
  for (int d = 0; d < devices; ++d) {
    event::Traffic::Device& total = out.devices.emplace_back();
    for (const engine::Traffic& t : cluster.traffic(d)) {
      const mesh::Collective& c = t.what;
      const Bytes sent = c.moved * c.calls;
      event::Traffic::Entry& e = entries[{c.phase, c.layer, c.axis, c.kind, c.cause}];
      if (d == 0) e.calls += c.calls;  // every device makes the same
      e.bytes += sent;
      e.seconds += t.seconds / devices;
      e.waited += t.waited / devices;
      total.bytes += sent;
      total.seconds += t.seconds;
      total.waited += t.waited;
    }
  }
  for (auto& [key, e] : entries) {
    const auto& [phase, layer, axis, kind, cause] = key;
    e.kind = mesh::to_string(kind);
    e.axis = axis;
    e.phase = mesh::to_string(phase);
    e.cause = mesh::to_string(cause);
    e.layer = layer;
    out.entries.push_back(std::move(e));
  }
  return out;
}

}  // namespace mw::train
