// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/status_strip.h"

#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QToolButton>
#include <QToolTip>

#include "ui/theme/icons.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/train/run_header.h"
#include "ui/train/run_lines.h"

namespace mw::ui {

// Predicted memory by category within the capacity: hatched, since it is not measured.
class MemoryBar : public QWidget {
 public:
  explicit MemoryBar(QWidget* parent) : QWidget(parent) { setFixedSize(150, 12); }
  void show_prediction(const std::optional<runs::Prediction>& prediction, double opacity) {
    prediction_ = prediction;
    opacity_ = opacity;
    update();
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    const Theme& t = theme();
    painter.fillRect(rect(), mix(t.panel, t.text, 0.10));
    if (!prediction_ || prediction_->capacity.value <= 0) return;
    painter.setOpacity(opacity_);
    const double whole = std::max(static_cast<double>(prediction_->capacity.value),
                                  static_cast<double>(prediction_->at_peak.total().value));
    double x = 0;
    for (size_t c = 0; c < kMemoryCategories; ++c) {
      const double w = static_cast<double>(prediction_->at_peak.bytes[c].value) / whole * width();
      const QColor color = t.memory(static_cast<MemoryCategory>(c));
      painter.fillRect(QRectF(x, 0, w, height()), mix(t.panel, color, 0.55));
      painter.fillRect(QRectF(x, 0, w, height()), QBrush(color, Qt::BDiagPattern));
      x += w;
    }
    const double limit = static_cast<double>(prediction_->capacity.value) / whole * width();
    painter.fillRect(QRectF(std::min<double>(limit, width() - 2), 0, 2, height()), t.bad);
  }

 private:
  std::optional<runs::Prediction> prediction_;
  double opacity_ = 1;
};

namespace {

QString provenance(const runs::Prediction& p) {
  QString rows;
  for (size_t c = 0; c < kMemoryCategories; ++c) {
    const Bytes b = p.at_peak.bytes[c];
    if (b.value == 0) continue;
    rows += u"<tr><td>%1</td><td align='right' style='padding-left:14px'>%2</td></tr>"_s.arg(
        category_text(static_cast<MemoryCategory>(c)), qs(to_text(b)));
  }
  QString notes;
  for (const auto& s : p.sources) notes += u"<li>"_s + qs(s).toHtmlEscaped() + u"</li>"_s;
  return StatusStrip::tr("<p><b>Predicted peak on %1</b><br>largest at: %2</p><table>%3</table><p>From:</p><ul>%4</ul>")
      .arg(qs(p.target).toHtmlEscaped(), qs(p.peak_instant).toHtmlEscaped(), rows, notes);
}

}  // namespace

StatusStrip::StatusStrip(Pricer& pricer, RunController& runs, QWidget* parent)
    : QStatusBar(parent),
      pricer_(pricer),
      runs_(runs),
      bar_(new MemoryBar(this)),
      price_(new QLabel(this)),
      origin_(new QLabel(tr("predicted"), this)),
      job_(new QLabel(this)),
      why_(new QToolButton(this)) {
  setSizeGripEnabled(false);
  auto* left = new QWidget(this);
  auto* row = new QHBoxLayout(left);
  row->setContentsMargins(10, 2, 0, 2);
  row->setSpacing(9);
  row->addWidget(bar_);
  row->addWidget(price_);
  origin_->setProperty("muted", true);
  QFont italic = small_font();
  italic.setItalic(true);
  origin_->setFont(italic);
  row->addWidget(origin_);
  why_->setIcon(icon(Glyph::info));
  why_->setProperty("flat", true);
  why_->setAccessibleName(tr("Where the predicted numbers come from"));
  why_->setFocusPolicy(Qt::TabFocus);
  row->addWidget(why_);
  row->addStretch(1);
  addWidget(left, 1);
  job_->setContentsMargins(0, 0, 10, 0);
  addPermanentWidget(job_);
  connect(why_, &QToolButton::clicked, this,
          [this] { QToolTip::showText(why_->mapToGlobal(QPoint(0, -10)), why_->toolTip(), why_, {}, 60000); });
  connect(&pricer_, &Pricer::changed, this, &StatusStrip::refresh);
  refresh();
}

QString StatusStrip::price_text() const {
  return price_->text();
}

void StatusStrip::refresh() {
  const auto& p = pricer_.prediction();
  const bool failed = !pricer_.problems().empty() && !pricer_.stale() && pricer_.outdated();
  const bool stale = pricer_.outdated();
  const Theme& t = theme();
  QPalette palette = price_->palette();
  if (!p) {
    price_->setText(failed ? qs(pricer_.problems().front().message) : tr("Memory: not predicted yet"));
    palette.setColor(QPalette::WindowText, t.muted);
  } else {
    const QString need = qs(to_text(p->at_peak.total())), room = qs(to_text(p->capacity));
    const double share = p->at_peak.total() / p->capacity * 100;
    const bool bound = p->basis == runs::Basis::bound;
    price_->setText((p->fits() ? bound ? tr("Fits: at most %1 of %2 (%3 %)") : tr("Fits: %1 of %2 (%3 %)")
                     : bound ? tr("May not fit: at most %1 of %2 (%3 %)")
                               : tr("Does not fit: %1 of %2 (%3 %)"))
                        .arg(need, room)
                        .arg(share, 0, 'f', share < 10 ? 1 : 0));
    palette.setColor(QPalette::WindowText, stale ? t.faint : p->fits() ? t.text : bound ? t.warn : t.bad);
    why_->setToolTip(provenance(*p));
  }
  price_->setPalette(palette);
  price_->setToolTip(failed ? qs(to_text(pricer_.problems().front())) : QString());
  origin_->setText(failed && p ? tr("predicted for the last valid document") : tr("predicted"));
  for (QWidget* w : {static_cast<QWidget*>(bar_), static_cast<QWidget*>(origin_), static_cast<QWidget*>(why_)})
    w->setVisible(p.has_value());
  bar_->show_prediction(p, stale ? 0.45 : 1);
}

void StatusStrip::show_frame() {
  const RunPtr live = runs_.live();
  QString text;
  if (live) {
    text = live->id.empty() ? tr("run") : qs(live->id);
    text += u"  \u00B7  "_s + (runs_.stopping() ? tr("Stopping") : state_text(live->view.state())) + u"  \u00B7  "_s +
            steps_text(live->view);
    if (const QString eta = eta_text(live->view); !eta.isEmpty()) text += u"  \u00B7  "_s + eta;
  }
  if (job_->text() != text) job_->setText(text);
}

}  // namespace mw::ui
