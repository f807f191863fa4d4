// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/named_experiment.h"

#include <QObject>

#include "ui/theme/text.h"

namespace mw::ui {
NamedExperiment form_experiment(const Document& document) {
  const auto& file = document.file();
  return {QObject::tr("Form: %1").arg(document.title()),
          document.experiment(),
          file.empty() ? QObject::tr("EXPERIMENT.json") : qpath(file),
          {}};
}

NamedExperiment run_experiment(const RunData& run) {
  QStringList names;
  for (const std::string& name : {run.id, run.name})
    if (!name.empty() && !names.contains(qs(name))) names << qs(name);
  return {QObject::tr("Run: %1").arg(names.join(u"  \u00B7  "_s)), run.record, QObject::tr("EXPERIMENT.json"), run.id};
}

}  // namespace mw::ui
