// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/experiment_panel.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QPlainTextEdit>
#include <QRegularExpression>
#include <QTabBar>

#include "core/base/text.h"
#include "core/experiment/parameters.h"
#include "core/store/store.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {
constexpr int kNarrowest = 260, kRailWidth = 34;
}

ExperimentPanel::ExperimentPanel(Document& document, const std::filesystem::path& runs_folder, QWidget* parent)
    : QWidget(parent),
      tabs_(new QTabWidget(this)),
      rail_(new QWidget(this)),
      form_(new Form(document)),
      json_(new JsonView(document)),
      command_(new CommandView(document, runs_folder)) {
  auto* row = flush_layout<QHBoxLayout>(this, 0);
  row->addWidget(rail_);
  row->addWidget(tabs_, 1);
  tabs_->setDocumentMode(true);
  tabs_->addTab(form_, tr("Form"));
  tabs_->addTab(json_, tr("JSON"));
  tabs_->addTab(command_, tr("Command"));
  tabs_->tabBar()->setAccessibleName(tr("Views of the experiment"));
  tabs_->setAccessibleName(tr("Experiment"));
  build_rail();
  set_state(PanelState::open);
}

void ExperimentPanel::build_rail() {
  rail_->setObjectName(u"panelBody"_s);
  rail_->setAttribute(Qt::WA_StyledBackground);
  auto* column = make_layout<QVBoxLayout>(rail_, {3, 4, 3, 4}, 6);
  const auto add = [&](Glyph glyph, const QString& help, QWidget* view) {
    QToolButton* button = flat_button(glyph, help, rail_);
    button->setToolTip(help);
    button->setFixedSize(kRailWidth - 6, kRailWidth - 6);
    column->addWidget(button);
    connect(button, &QToolButton::clicked, this, [this, view] {
      if (view) tabs_->setCurrentWidget(view);
      emit state_wanted(PanelState::open);
    });
  };
  add(Glyph::unfold, tr("Open the experiment panel (Alt+0)"), nullptr);
  add(Glyph::form, tr("Show the form"), form_);
  add(Glyph::json, tr("Show the JSON"), json_);
  add(Glyph::command, tr("Show the command line"), command_);
  column->addStretch(1);
  QToolButton* fold = flat_button(Glyph::fold, tr("Fold the experiment panel"), tabs_);
  fold->setToolTip(tr("Fold the experiment panel (Alt+0)"));
  tabs_->setCornerWidget(fold);
  connect(fold, &QToolButton::clicked, this, [this] { emit state_wanted(PanelState::folded); });
}

void ExperimentPanel::set_state(PanelState state) {
  const bool folded = state == PanelState::folded;
  rail_->setVisible(folded);
  tabs_->setVisible(!folded);
  setMinimumWidth(folded ? kRailWidth : kNarrowest);
  setMaximumWidth(folded ? kRailWidth : QWIDGETSIZE_MAX);
}

void ExperimentPanel::show_tab(int tab) {
  tabs_->setCurrentIndex(tab);
  if (state() == PanelState::folded) emit state_wanted(PanelState::open);
}

void ExperimentPanel::go_to(const Problem& problem) {
  if (problem.id != "JSON" && form_->row(problem.place)) {
    show_form();
    form_->focus_key(problem.place);
    return;
  }
  show_json();
  json_->focus_place(problem.place);
}

namespace {

// Dotted keys of all leaves that are in the parameter table.
void leaves(const Json& node, const std::string& prefix, std::vector<std::string>& out) {
  for (const auto& [name, value] : node.items()) {
    const std::string key = prefix.empty() ? name : prefix + "." + name;
    if (experiment::find_parameter(key))
      out.push_back(key);
    else if (value.is_object())
      leaves(value, key, out);
  }
}

std::string set_text(const experiment::Experiment& experiment, const std::string& key, const Json& value) {
  const experiment::Parameter* p = experiment::find_parameter(key);
  if (p->type == experiment::ParamType::path && value.is_string() && raw_value(experiment, key))
    return experiment.path(key)
        .string();  // --set resolves paths from the working folder, a document from its own folder
  return value.is_string() ? value.get<std::string>() : value.dump();
}

QStringList differences(const Document& document) {
  const experiment::Experiment &now = document.experiment(), &before = document.saved();
  std::vector<std::string> keys, old_keys;
  leaves(now.json(), "", keys);
  leaves(before.json(), "", old_keys);
  QStringList out;
  for (const std::string& key : keys) {
    const Json* was = raw_value(before, key);
    const Json& is = *raw_value(now, key);
    if (!was || *was != is) out << qs(key + "=" + set_text(now, key, is));
  }
  // train.steps alone would clear train.epochs (experiment::apply_sets).
  const Json* epochs = raw_value(now, "train.epochs");
  const auto names = [&](QStringView key) { return !out.filter(QRegularExpression(u'^' + key.toString())).isEmpty(); };
  if (epochs && names(u"train.steps=") && !names(u"train.epochs="))
    out << qs("train.epochs=" + set_text(now, "train.epochs", *epochs));
  for (const std::string& key : old_keys)  // removed keys: sets the default explicitly
    if (!raw_value(now, key)) out << qs(key + "=" + set_text(now, key, experiment::find_parameter(key)->fallback));
  return out;
}

}  // namespace

QString shell_quoted(const QString& text) {
  static const QRegularExpression plain(u"^[A-Za-z0-9_./=:,@%+-]+$"_s);
  if (plain.match(text).hasMatch()) return text;
  return qs(mw::shell_quoted(ss(text)));
}

QString command_line(const Document& document, const std::filesystem::path& runs_folder, const QString& name) {
  QString command, before;
  if (document.file().empty()) {
    // Paths become absolute, so that the file works in any folder.
    experiment::Experiment absolute = document.experiment();
    for (const auto& p : experiment::parameters())
      if (const Json* v = raw_value(absolute, p.key);
          p.type == experiment::ParamType::path && v && v->is_string() && !v->get<std::string>().empty())
        absolute.set_value(p.key, document.experiment().path(p.key).string());
    before = u"cat > experiment.json <<'JSON'\n"_s + qs(absolute.text()) + u"JSON\n"_s;
    command = u"meshwright %1 experiment.json"_s.arg(name);
  } else {
    command = u"meshwright %1 "_s.arg(name) + shell_quoted(qpath(document.file()));
    for (const QString& set : differences(document)) command += u" \\\n  --set "_s + shell_quoted(set);
  }
  if (runs_folder != store::default_folder()) command += u" \\\n  --runs-dir "_s + shell_quoted(qpath(runs_folder));
  return before + command + u'\n';
}

CommandView::CommandView(Document& document, std::filesystem::path runs_folder, QWidget* parent)
    : QWidget(parent), document_(document), runs_folder_(std::move(runs_folder)), text_(new QPlainTextEdit(this)) {
  auto* column = flush_layout<QVBoxLayout>(this, 0);
  auto* top = make_layout<QHBoxLayout>(nullptr, {10, 5, 8, 5});
  auto* title = new ElidedLabel(Qt::ElideRight, this);  // of a narrow panel
  title->setText(tr("Command line for this run"));
  title->setProperty("muted", true);
  top->addWidget(title, 1);
  QPushButton* copy = add_button(*top, tr("Copy"), {}, Glyph::copy);
  column->addLayout(top);
  column->addWidget(text_, 1);
  text_->setReadOnly(true);
  text_->setFont(mono_font(0.95));
  text_->setLineWrapMode(QPlainTextEdit::WidgetWidth);
  text_->setWordWrapMode(QTextOption::WrapAnywhere);
  text_->setAccessibleName(tr("Command line of this experiment"));
  text_->document()->setDocumentMargin(8);
  connect(copy, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(text_->toPlainText()); });
  connect(&document, &Document::changed, this, &CommandView::refresh);
  connect(&document, &Document::file_changed, this, &CommandView::refresh);
  refresh();
}

void CommandView::set_command(const QString& command) {
  command_ = command;
  refresh();
}

void CommandView::refresh() {
  text_->setPlainText(command_line(document_, runs_folder_, command_));
}

}  // namespace mw::ui

#include "moc_experiment_panel.cpp"
