// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/record_view.h"

#include <QHeaderView>

#include "core/base/units.h"
#include "core/compare/audited_training.h"
#include "ui/form/form_field.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

QString leaf_text(const std::string& key, const Json& value) {
  if (value.is_number() && key.ends_with("bytes")) return qs(to_text(Bytes(value.get<std::int64_t>())));
  if (value.is_number() && key.ends_with("seconds")) return qs(to_text(Seconds(value.get<double>())));
  if (value.is_number_float()) return qs(number_text(value.get<double>(), 5));
  return field_text(value);
}

QTreeWidgetItem* add(QTreeWidgetItem* parent, const QString& name, const QString& value, const QString& note = {}) {
  auto* item = new QTreeWidgetItem(parent, {name, value, note});
  item->setToolTip(1, value);
  return item;
}

void add_json(QTreeWidgetItem* parent, const Json& json) {
  const auto one = [&](const std::string& key, const QString& name, const Json& value) {
    if (value.is_object() || (value.is_array() && !value.empty() && value.front().is_object()))
      add_json(add(parent, name, {}), value);
    else
      add(parent, name, leaf_text(key, value));
  };
  if (json.is_array()) {
    int at = 0;
    for (const Json& e : json) {
      const bool named = e.is_object() && e.contains("kernel") && e["kernel"].is_string();
      one("", named ? qs(e["kernel"].get<std::string>()) : QString::number(at + 1), e);
      ++at;
    }
    return;
  }
  for (const auto& [key, value] : json.items()) {
    QString name = qs(key);
    one(key, name.replace(u'_', u' '), value);
  }
}

}  // namespace

RecordView::RecordView(plan::LoadContext context, QWidget* parent) : QTreeWidget(parent), context_(std::move(context)) {
  setHeaderLabels({tr("Setting"), tr("Value"), tr("Unit")});
  setAccessibleName(tr("Record of the run"));
  setUniformRowHeights(true);
  setRootIsDecorated(true);
  header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  header()->setSectionResizeMode(1, QHeaderView::Stretch);
  header()->setStretchLastSection(false);
}

void RecordView::show_run(const RunPtr& run) {
  run_ = run;
  fill();
}

void RecordView::grow() {
  if (!run_) return;
  if (started_ != !run_->view.info().empty() || ended_ != run_->view.ended()) fill();
}

void RecordView::fill() {
  clear();
  if (!run_) return;
  started_ = !run_->view.info().empty();
  ended_ = run_->view.ended();
  const experiment::Experiment& record = run_->record;
  auto* config = new QTreeWidgetItem(this, {tr("Configuration"), tr("frozen when the run started")});
  QTreeWidgetItem* group = nullptr;
  std::string group_name;
  for (const experiment::Parameter& p : experiment::parameters()) {
    const std::string key = p.key.ends_with(".*") ? p.key.substr(0, p.key.size() - 2) : p.key;
    const Json* set = raw_value(record, key);
    if (!set && p.level == experiment::Level::advanced) continue;  // defaults of advanced settings are omitted
    if (p.group != group_name || !group) {
      group = add(config, qs(p.group), {});
      group_name = p.group;
    }
    auto* item = add(group, qs(p.label), field_text(set ? *set : p.fallback), qs(p.unit));
    item->setToolTip(0, qs(p.key));
    if (!set) item->setForeground(1, theme().faint);
  }
  if (started_)
    add_json(new QTreeWidgetItem(this, {tr("At the start"), tr("measured and predicted")}), run_->view.info());
  if (const auto& f = run_->view.finished()) {
    auto* out = new QTreeWidgetItem(this, {tr("Outcome"), qs(to_string(f->state))});
    add(out, tr("Steps"), QString::number(f->steps));
    add(out, tr("Tokens seen"), qs(count_text(static_cast<double>(f->tokens))));
    add(out, tr("Time"), qs(to_text(Seconds(f->seconds))));
    add(out, tr("Peak memory"), qs(to_text(f->peak)));
    if (!f->error.empty()) add(out, tr("Error"), qs(f->error));
    add_json(out, f->summary);
    add_audit();
  }
  expandToDepth(1);
}

// Adds the findings of the audit for a finished run, in particular an imported one.
void RecordView::add_audit() {
  if (run_->id.empty() || run_->kind() != RunKind::train || !context_) return;
  try {
    const audit::TrainingAudit audit =
        compare::audit_known(compare::training_claim({.name = run_->name,
                                                      .id = run_->id,
                                                      .experiment = run_->record,
                                                      .view = run_->view,
                                                      .has_all_settings = !run_->view.is_imported()}),
                             *context_());
    auto* verdict = new QTreeWidgetItem(this, {tr("Audit"), qs(to_string(compare::worst(audit)))});
    for (const audit::MfuFormula& f : audit.mfu)
      add(verdict, tr("MFU"), tr("%1 %").arg(qs(number_text(100 * f.share, 3))), qs(f.name));
    for (const audit::AuditFinding& f : audit.findings)
      add(verdict, qs(f.rule), tr("%1: %2").arg(qs(to_string(f.verdict)), qs(f.text)), qs(f.formula));
  } catch (const Error& error) {  // the catalogue cannot be read
    add(new QTreeWidgetItem(this, {tr("Audit"), tr("not possible")}), tr("Error"), qs(to_text(error.problem())));
  }
}

}  // namespace mw::ui

#include "moc_record_view.cpp"
