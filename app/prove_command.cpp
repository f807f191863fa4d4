// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>

#include "app/commands.h"
#include "app/progress_line.h"
#include "core/jobs/prove.h"

namespace mw::app {

int prove_command(const Common& common, const RunArgs& args) {
  const experiment::Experiment experiment = load_experiment(common);
  ProgressLine line;
  const jobs::MeshProof proof = jobs::prove(
      experiment,
      {.steps = args.prove_steps,
       .progress = [&](const std::string& phase, long done,
                       long total) { line.update(phase + " " + std::to_string(done) + "/" + std::to_string(total)); }},
      common.stop);
  line.clear();
  if (common.output == Output::json)
    print_json(to_json(proof));
  else
    print_text("%s", to_text(proof).c_str());
  return proof.holds() ? 0 : 1;
}

}  // namespace mw::app
