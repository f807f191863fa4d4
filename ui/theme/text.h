// SPDX-License-Identifier: GPL-3.0-or-later
// Conversions between UTF-8 strings of core and Qt strings, and common texts.
#pragma once
#include <QLocale>
#include <QObject>
#include <QString>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/formats/results/csv.h"

namespace mw::ui {

using namespace Qt::StringLiterals;

inline QString qs(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}
inline std::string ss(const QString& text) {
  return text.toStdString();
}
// Groups digits: 12345 becomes "12,345".
inline QString grouped(std::int64_t n) {
  return QLocale(QLocale::English).toString(static_cast<qlonglong>(n));
}
inline QString capitalized(const QString& text) {
  return text.left(1).toUpper() + text.mid(1);
}
inline QString devices_text(int count) {
  return count == 1 ? QObject::tr("1 device") : QObject::tr("%1 devices").arg(count);
}
// Quotes one CSV cell as in RFC 4180.
inline QString csv_cell(const QString& text) {
  return qs(formats::csv_cell(ss(text)));
}
inline QString qpath(const std::filesystem::path& path) {
  return qs(path.string());
}
inline std::filesystem::path fspath(const QString& path) {
  return std::filesystem::path(ss(path));
}

}  // namespace mw::ui
