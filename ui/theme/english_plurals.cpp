// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/english_plurals.h"

#include <QCoreApplication>

#include "ui/theme/text.h"

namespace mw::ui {

QString EnglishPlurals::translate(const char*, const char* text, const char*, int n) const {
  if (n < 0 || !text) return {};
  QString form = QString::fromUtf8(text);
  if (!form.contains(u"(s)"_s)) return {};
  return form.replace(u"(s)"_s, n == 1 ? QString() : u"s"_s);
}

void install_english_plurals() {
  QCoreApplication* application = QCoreApplication::instance();
  if (application->findChild<EnglishPlurals*>()) return;
  QCoreApplication::installTranslator(new EnglishPlurals(application));
}

}  // namespace mw::ui

#include "moc_english_plurals.cpp"
