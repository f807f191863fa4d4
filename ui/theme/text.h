// SPDX-License-Identifier: GPL-3.0-or-later
// Between core's UTF-8 strings and Qt's.
#pragma once
#include <QString>
#include <filesystem>
#include <string>
#include <string_view>

namespace mw::ui {

using namespace Qt::StringLiterals;

inline QString qs(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}
inline std::string ss(const QString& text) {
  return text.toStdString();
}
inline QString qpath(const std::filesystem::path& path) {
  return qs(path.string());
}
inline std::filesystem::path fspath(const QString& path) {
  return std::filesystem::path(ss(path));
}

}  // namespace mw::ui
