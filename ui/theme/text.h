// SPDX-License-Identifier: GPL-3.0-or-later
// Conversions between UTF-8 strings of core and Qt strings, and common texts.
#pragma once
#include <QLocale>
#include <QObject>
#include <QString>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "core/base/text.h"

namespace mw::ui {

using namespace Qt::StringLiterals;

inline QString qs(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}
inline std::string ss(const QString& text) {
  return text.toStdString();
}
// A value of core as its to_text() has it.
template <class Value>
QString shown(const Value& value) {
  return qs(to_text(value));
}
// Groups digits: 12345 becomes "12,345".
inline QString grouped(std::int64_t n) {
  return QLocale(QLocale::English).toString(static_cast<qlonglong>(n));
}
// The number that chooses the plural form of a translation.
template <class Number>
int plural_count(Number n) {
  constexpr int kMost = std::numeric_limits<int>::max();
  return std::cmp_greater(n, kMost) ? kMost : static_cast<int>(n);
}
inline QString capitalized(const QString& text) {
  return text.left(1).toUpper() + text.mid(1);
}
inline QString devices_text(int count) {
  return QObject::tr("%n device(s)", nullptr, count);
}
// Quotes one CSV cell as in RFC 4180.
inline QString csv_cell(const QString& text) {
  return qs(mw::csv_cell(ss(text)));
}
inline QString qpath(const std::filesystem::path& path) {
  return qs(path.string());
}
inline std::filesystem::path fspath(const QString& path) {
  return std::filesystem::path(ss(path));
}

}  // namespace mw::ui
