// SPDX-License-Identifier: GPL-3.0-or-later
// `schema`: the JSON Schema of an experiment file.
#include "core/experiment/schema.h"

#include "app/output.h"
#include "app/subcommand.h"

namespace mw::app {

Subcommand schema_subcommand() {
  return {.name = "schema",
          .help = "Print the JSON Schema of an experiment file",
          .add_options = [](CLI::App&, CommonOptions&) {},
          .run =
              [](const CommonOptions&) {
                print_json(experiment::experiment_schema());
                return 0;
              }};
}

}  // namespace mw::app
