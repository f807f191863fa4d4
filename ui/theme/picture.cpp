// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/picture.h"

#include <QBuffer>

#include "core/base/atomic_file.h"

namespace mw::ui {

void write_png(const QPixmap& picture, const std::filesystem::path& file) {
  QBuffer bytes;
  bytes.open(QIODevice::WriteOnly);
  picture.save(&bytes, "PNG");
  AtomicFile out(file);
  out.write(std::as_bytes(std::span(bytes.data().constData(), static_cast<size_t>(bytes.size()))));
  out.commit();
}

}  // namespace mw::ui
