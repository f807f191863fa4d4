// SPDX-License-Identifier: GPL-3.0-or-later
// MIME data of dragged runs, from the Runs table and the Serve page to the Compare page.
#pragma once
#include <QMimeData>
#include <vector>

#include "core/store/store.h"
#include "ui/theme/text.h"

namespace mw::ui {

inline QString run_mime_type() {
  return u"application/x-meshwright-runs"_s;
}

inline QMimeData* run_mime(const std::vector<store::RunId>& runs) {
  QStringList ids;
  for (const auto& run : runs) ids << qs(run);
  auto* data = new QMimeData;
  data->setData(run_mime_type(), ids.join(u'\n').toUtf8());
  return data;
}

inline std::vector<store::RunId> runs_in(const QMimeData& data) {
  std::vector<store::RunId> out;
  for (const QByteArray& id : data.data(run_mime_type()).split('\n'))
    if (!id.isEmpty()) out.push_back(id.toStdString());
  return out;
}

}  // namespace mw::ui
