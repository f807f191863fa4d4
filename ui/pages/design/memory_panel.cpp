// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/memory_panel.h"

#include "ui/run_views/run_lines.h"

namespace mw::ui {
namespace {

ChartBar bar_of(const plan::DeviceMemory& memory, const QString& name) {
  ChartBar bar{.name = name, .text = qs(to_text(memory.at_peak.total()))};
  for (const MemoryCategory category : all_values<MemoryCategory>())
    bar.values.push_back(static_cast<double>(memory.at_peak[category].value));
  return bar;
}

// The categories that occur in a design.
ChartBars memory_bars(const plan::DeviceMemory& memory, const plan::DeviceMemory* pinned) {
  ChartBars all{.text_title = MemoryPanel::tr("Total"), .least_end = static_cast<double>(memory.capacity.value)};
  all.bars.push_back(bar_of(memory, MemoryPanel::tr("this")));
  if (pinned) all.bars.push_back(bar_of(*pinned, MemoryPanel::tr("pinned")));
  for (const MemoryCategory category : all_values<MemoryCategory>()) {
    const size_t layer = all.layers.size();
    const bool occurs =
        std::any_of(all.bars.begin(), all.bars.end(), [layer](const ChartBar& bar) { return bar.values[layer] > 0; });
    if (occurs)
      all.layers.emplace_back(category_text(category), theme().memory(category));
    else
      for (ChartBar& bar : all.bars) bar.values.erase(bar.values.begin() + static_cast<std::ptrdiff_t>(layer));
  }
  return all;
}

TableModel<plan::Buffer>::Columns buffer_columns() {
  return {
      {.title = MemoryPanel::tr("Largest buffers at peak"), .text = [](const plan::Buffer& b) { return qs(b.name); }},
      TableModel<plan::Buffer>::number(MemoryPanel::tr("Bytes"), [](const auto& b) { return shown(b.bytes); }),
      {.title = MemoryPanel::tr("Category"), .text = [](const plan::Buffer& b) { return category_text(b.category); }}};
}

}  // namespace

MemoryPanel::MemoryPanel(QWidget* parent)
    : QWidget(parent),
      chart_(new Chart({.title = tr("Memory of each device"), .quantity = AxisQuantity::bytes, .rows = true}, link_,
                       this)),
      model_(buffer_columns(),
             [this](const plan::Buffer& b, int column, int role) -> QVariant {
               if (role != Qt::ToolTipRole) return {};
               QStringList lines{model_.text(b, column)};
               if (!b.formula.empty()) lines << qs(b.formula);
               if (b.unpadded < b.bytes) lines << tr("%1 without padding").arg(qs(to_text(b.unpadded)));
               return lines.join(u'\n');
             }),
      buffers_(make_table(model_, tr("Largest buffers at the peak"), this)) {
  auto* column = make_layout<QVBoxLayout>(this, {0, 2, 0, 0}, 3);
  link_.set_x(tr("design"), AxisQuantity::count);
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
  column->addWidget(chart_);
  column->addWidget(buffers_, 1);
}

void MemoryPanel::show_design(const views::DesignPtr& design, const views::DesignPtr& pinned, bool stale) {
  if (!design) return;
  const plan::DeviceMemory& memory = design->plan().memory;
  ChartBars bars = memory_bars(memory, pinned ? &pinned->plan().memory : nullptr);
  bars.is_outdated = stale;
  chart_->setFixedHeight(bars_height(bars.bars.size()));
  chart_->set_bars(std::move(bars));
  chart_->set_levels({{tr("capacity"), static_cast<double>(memory.capacity.value), theme().bad}});
  chart_->set_notes({}, tr("%1 of %2, %3; peak: %4")
                            .arg(qs(to_text(memory.at_peak.total())), qs(to_text(memory.capacity)),
                                 devices_text(design->plan().devices), qs(memory.peak_instant)));
  model_.set_rows(memory.buffers, [](const auto&, const auto&) { return true; });
}

void MemoryPanel::show_nothing() {
  chart_->set_bars({});
  chart_->set_levels({});
  chart_->set_notes({}, {});
  model_.set_rows({});
}

}  // namespace mw::ui

#include "moc_memory_panel.cpp"
