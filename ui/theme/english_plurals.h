// SPDX-License-Identifier: GPL-3.0-or-later
// The plural forms of the English texts in the source. tr("%n run(s)", nullptr, n) shows "1 run" and "2 runs".
#pragma once
#include <QTranslator>

namespace mw::ui {

class EnglishPlurals : public QTranslator {
  Q_OBJECT
 public:
  using QTranslator::QTranslator;
  bool isEmpty() const override { return false; }
  // Null, as for a text without a translation, if the text does not depend on a number.
  QString translate(const char* context, const char* text, const char* disambiguation, int n) const override;
};

// Once for an application; translations that are installed later come first.
void install_english_plurals();

}  // namespace mw::ui
