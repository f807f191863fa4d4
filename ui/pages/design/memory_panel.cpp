// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/memory_panel.h"

#include <QHeaderView>
#include <QLabel>
#include <QTableView>
#include <QVBoxLayout>

#include "ui/run_views/run_lines.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

Bar bar_of(const plan::DeviceMemory& memory, const QString& name) {
  Bar bar{.name = name,
          .limit = static_cast<double>(memory.capacity.value),
          .limit_text = MemoryPanel::tr("capacity %1").arg(qs(to_text(memory.capacity)))};
  for (const MemoryCategory category : all_values<MemoryCategory>()) {
    const Bytes b = memory.at_peak[category];
    if (b.value > 0)
      bar.parts.push_back(
          {category_text(category), theme().memory(category), static_cast<double>(b.value), qs(to_text(b))});
  }
  return bar;
}

TableModel<plan::Buffer>::Columns buffer_columns() {
  return {
      {.title = MemoryPanel::tr("Largest buffers at peak"), .text = [](const plan::Buffer& b) { return qs(b.name); }},
      number_column<plan::Buffer>(MemoryPanel::tr("Bytes"), [](const plan::Buffer& b) { return qs(to_text(b.bytes)); }),
      {.title = MemoryPanel::tr("Category"), .text = [](const plan::Buffer& b) { return category_text(b.category); }}};
}

}  // namespace

MemoryPanel::MemoryPanel(QWidget* parent)
    : QWidget(parent),
      title_(new QLabel(this)),
      legend_(new QLabel(this)),
      bar_(new StackBar(this)),
      model_(buffer_columns(),
             [this](const plan::Buffer& b, int column, int role) -> QVariant {
               if (role != Qt::ToolTipRole) return {};
               QStringList lines{model_.text(b, column)};
               if (!b.formula.empty()) lines << qs(b.formula);
               if (b.unpadded < b.bytes) lines << tr("%1 without padding").arg(qs(to_text(b.unpadded)));
               return lines.join(u'\n');
             }),
      buffers_(make_table(model_, tr("Largest buffers at the peak"), this)) {
  auto* column = make_layout<QVBoxLayout>(this, {8, 6, 8, 4}, 4);
  title_->setTextFormat(Qt::RichText);
  legend_->setTextFormat(Qt::RichText);
  legend_->setWordWrap(true);
  legend_->setFont(small_font());
  bar_->setAccessibleName(tr("Predicted memory of a device by category"));
  buffers_->setAlternatingRowColors(false);
  buffers_->verticalHeader()->setDefaultSectionSize(20);
  buffers_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  buffers_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  // Fixed widths, because measuring every row for every prediction would slow a drag.
  const QFontMetrics metrics(buffers_->font());
  for (const auto& [at, widest] : {std::pair{1, tr("1,023.99 GiB")}, std::pair{2, tr("activations")}}) {
    buffers_->horizontalHeader()->setSectionResizeMode(at, QHeaderView::Fixed);
    buffers_->setColumnWidth(at, metrics.horizontalAdvance(widest) + 18);
  }
  column->addWidget(title_);
  column->addWidget(bar_);
  column->addWidget(legend_);
  column->addWidget(buffers_, 1);
}

void MemoryPanel::show_design(const views::DesignPtr& design, const views::DesignPtr& pinned, bool stale) {
  if (!design) return;
  const plan::DeviceMemory& memory = design->plan().memory;
  title_->setText(tr("<b>Memory of each device</b> &nbsp;%1 of %2, %3")
                      .arg(qs(to_text(memory.at_peak.total())), qs(to_text(memory.capacity)),
                           devices_text(design->plan().devices)));
  title_->setToolTip(tr("Peak: %1").arg(qs(memory.peak_instant)));
  std::vector<Bar> bars{bar_of(memory, pinned ? tr("this") : QString())};
  if (pinned) bars.push_back(bar_of(pinned->plan().memory, tr("pinned")));
  bar_->show_bars(std::move(bars), stale);
  show_legend(memory);
  model_.set_rows(memory.buffers, [](const auto&, const auto&) { return true; });
}

void MemoryPanel::show_nothing() {
  title_->setText(tr("<b>Memory of each device</b>"));
  title_->setToolTip({});
  bar_->show_bars({}, false);
  legend_->clear();
  model_.set_rows({});
}

void MemoryPanel::show_legend(const plan::DeviceMemory& memory) {
  QStringList parts;
  for (const MemoryCategory category : all_values<MemoryCategory>()) {
    if (memory.at_peak[category].value == 0) continue;
    parts << u"<span style='color:%1'>\u25A0</span>&nbsp;%2&nbsp;<b>%3</b>"_s.arg(
        theme().memory(category).name(), category_text(category).replace(u' ', QChar::Nbsp),
        qs(to_text(memory.at_peak[category])).replace(u' ', QChar::Nbsp));
  }
  legend_->setText(parts.join(u" &nbsp; "_s));
}

}  // namespace mw::ui
