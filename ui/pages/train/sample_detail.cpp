// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/sample_detail.h"

#include <QKeyEvent>

#include "core/views/text_difference.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

QString html(const std::string& text) {
  return qs(text).toHtmlEscaped().replace(u'\n', u"<br>"_s);
}

// Missing words are struck through, additional ones underlined, so that colour alone carries no meaning.
QString difference_html(const views::SampleShown& sample) {
  QString out;
  views::TextPart::Kind before = views::TextPart::Kind::same;
  for (const views::TextPart& part : views::text_difference(sample.expected, sample.text)) {
    if (before == views::TextPart::Kind::missing && part.kind == views::TextPart::Kind::extra) out += u' ';
    before = part.kind;
    const bool missing = part.kind == views::TextPart::Kind::missing;
    out += part.kind == views::TextPart::Kind::same
               ? html(part.text)
               : u"<span style='color:%1; text-decoration:%2'>%3</span>"_s.arg(
                     (missing ? theme().bad : theme().good).name(), missing ? u"line-through"_s : u"underline"_s,
                     html(part.text));
  }
  return out;
}

}  // namespace

SampleDetail::SampleDetail(QWidget* parent) : QTextEdit(parent) {
  setReadOnly(true);
  setTabChangesFocus(true);
  setAccessibleName(tr("Selected sample"));
  setToolTip(tr("Press Escape to close the sample"));
  hide();
}

void SampleDetail::show_sample(const views::SampleShown& sample) {
  QString text =
      u"<p><b>%1</b></p>"_s.arg(sample.verdict.empty() ? tr("Step %1").arg(sample.step)
                                                       : tr("Step %1: %2").arg(sample.step).arg(qs(sample.verdict)));
  const auto section = [&](const QString& title, const QString& content) {
    text += u"<p><span style='color:%1'>%2</span><br>%3</p>"_s.arg(theme().muted.name(), title, content);
  };
  if (!sample.expected.empty() && sample.expected != sample.text)
    section(tr("Difference (expected words that are missing are struck through, additional ones underlined)"),
            difference_html(sample));
  section(tr("Answer"), html(sample.text));
  if (!sample.expected.empty()) section(tr("Expected"), html(sample.expected));
  section(tr("Prompt"), html(sample.prompt));
  setHtml(text);
  show();
}

void SampleDetail::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape)
    hide();
  else
    QTextEdit::keyPressEvent(event);
}

}  // namespace mw::ui

#include "moc_sample_detail.cpp"
