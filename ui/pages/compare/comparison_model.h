// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of a comparison: a row per key, a column per run, changes against the first run, marks for audit findings
// and missed SLOs. GUI thread.
#pragma once
#include <filesystem>
#include <memory>

#include "core/compare/comparison.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

// differing: settings that differ, and results that several runs have.
enum class RowsShown { differing, all };

class ComparisonModel : public TableModel<compare::ComparisonRow> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::ComparisonModel)
 public:
  enum Role { marked_role = first_own_role, impossible_role, over_slo_role };
  using Ptr = std::shared_ptr<const compare::Comparison>;
  ComparisonModel();

  void show(Ptr comparison);
  void set_shown(RowsShown shown);
  RowsShown shown() const { return shown_; }
  void set_slo(const options::Slo& slo);
  void set_emphasis(int column);                               // of a run; -1: none
  void set_title_width(int pixels) { title_width_ = pixels; }  // of the runs; titles are elided in the middle
  int marked_cells() const;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  void refill();
  bool over_slo(const compare::ComparisonRow& row, size_t column) const;
  QString value_text(const compare::ComparisonRow& row, size_t column) const;
  QString tooltip(const compare::ComparisonRow& row, size_t column) const;
  QVariant cell(const compare::ComparisonRow& row, int column, int role) const;
  Ptr comparison_;
  RowsShown shown_ = RowsShown::differing;
  options::Slo slo_;
  int emphasis_ = -1, title_width_ = 0;  // 0: titles are not elided
};

// "▼ 96 %", "▲ 3.2 x", "=": the glyph shows the direction independently of colour.
QString delta_text(double delta);
// The SLO limit for the key of a result, in ms; 0: none.
double slo_of_key(const options::Slo& slo, std::string_view key);

// Exports a comparison in the format of the file extension: csv, md and tex as text; html as a report; png, svg and pdf
// as painted verdict, table and charts in the light theme. GUI thread.
QString export_filter();  // for the file dialog
// Writes atomically. Throws Error EXPORT for an unknown extension or if the file cannot be written.
void export_comparison(const compare::Comparison& comparison, const std::vector<compare::ComparedRun>& runs,
                       const options::Slo& slo, const std::filesystem::path& file);

}  // namespace mw::ui
