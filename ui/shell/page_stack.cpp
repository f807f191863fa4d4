// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/page_stack.h"

#include <QEvent>
#include <QScrollBar>
#include <algorithm>

#include "ui/pages/compare/compare_page.h"
#include "ui/pages/data/data_page.h"
#include "ui/pages/design/design_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/pages/serve/serve_page.h"
#include "ui/pages/train/train_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/session.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

constexpr int kLeastPageHeight = 240;

}  // namespace

PageArea::PageArea(QWidget* pages) {
  setWidget(pages);
  setWidgetResizable(true);
  setFocusPolicy(Qt::NoFocus);
}

QSize PageArea::minimumSizeHint() const {
  const QSize page = widget()->minimumSizeHint();
  return {page.width() + (scrolls_ ? verticalScrollBar()->sizeHint().width() : 0),
          std::min(page.height(), kLeastPageHeight)};
}

void PageArea::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  update_least_size();
}

// Another page, or another layout of this one, may need another size.
bool PageArea::eventFilter(QObject* watched, QEvent* event) {
  if (watched == widget() && event->type() == QEvent::LayoutRequest) update_least_size();
  return QScrollArea::eventFilter(watched, event);
}

void PageArea::update_least_size() {
  scrolls_ = widget()->minimumSizeHint().height() > height();
  updateGeometry();
}

PageStack::PageStack(Document& document, Predictor& predictor, SharedPlanContext& context, RunController& controller,
                     const std::filesystem::path& resources, QWidget* parent)
    : QStackedWidget(parent),
      design(*new DesignPage(document, predictor, context)),
      data(*new DataPage(document, controller.store())),
      train(*new TrainPage(controller)),
      serve(*new ServePage(document, controller)),
      compare(*new ComparePage({controller.runs_folder(), resources / "results"}, context.loader())),
      runs(*new RunsPage(controller.runs_folder(), controller.context(), context.own_folder())) {
  const auto add = [this](auto&... pages) { (addWidget(&pages), ...), (all_.push_back(&pages), ...); };
  add(design, data, train, serve, compare, runs);
  connect_pages();
}

void PageStack::connect_pages() {
  connect(&compare, &ComparePage::import_wanted, this, [this](const QString& bundle) {
    compares_imported_ = true;
    runs.import_files({fspath(bundle)});
  });
  connect(&runs, &RunsPage::imported, this, [this](const QStringList& imported) {
    if (std::exchange(compares_imported_, false))
      for (const QString& run : imported) compare.add_run(ss(run));
  });
  connect(&train, &TrainPage::snapshot_changed, this,
          [this] { design.measured().show_snapshot(train.run(), train.snapshot(), train.playhead_mode()); });
}

void PageStack::attach(Workspace& workspace) {
  const auto add = [&workspace](Page page, const QString& id, const QString& text, const QString& help) {
    const int digit = static_cast<int>(page) + 1;
    workspace.actions().add({u"page."_s + id, text, help, QKeySequence(u"Ctrl+%1"_s.arg(digit))},
                            [&workspace, page] { workspace.show_page(page); });
  };
  add(Page::design, u"design"_s, tr("Show Design"), tr("Show mesh, shards, memory, time and cost of the experiment"));
  add(Page::data, u"data"_s, tr("Show Data"), tr("Show rows, tokens, loss masks, lengths, padding and packing"));
  add(Page::train, u"train"_s, tr("Show Train"), tr("Show the charts and samples of a training run"));
  add(Page::serve, u"serve"_s, tr("Show Serve"), tr("Show latency sweeps, and time and memory by batch size"));
  add(Page::compare, u"compare"_s, tr("Show Compare"),
      tr("Show runs and results side by side with the first as baseline"));
  add(Page::runs, u"runs"_s, tr("Show Runs"), tr("Show all runs"));
  for (WindowPage* page : all_) page->attach(workspace);
}

void PageStack::show_page(Page page) {
  // Only the current page limits how small the window can be.
  for (int i = 0; i < count(); ++i) {
    const auto policy = i == static_cast<int>(page) ? QSizePolicy::Expanding : QSizePolicy::Ignored;
    widget(i)->setSizePolicy(policy, policy);
  }
  setCurrentIndex(static_cast<int>(page));
  if (page == Page::runs) runs.refresh();
}

void PageStack::save_state(Session& session) const {
  QVariantList tabs;
  for (const QTabWidget* tabbed : findChildren<QTabWidget*>()) tabs << tabbed->currentIndex();
  session.set_value(u"layout/tabs"_s, tabs);
  for (const WindowPage* page : all_) page->save_state(session);
}

void PageStack::restore_state(const Session& session) {
  for (WindowPage* page : all_) page->restore_state(session);
  const QVariantList tabs = session.value(u"layout/tabs"_s).toList();
  const QList<QTabWidget*> tabbed = findChildren<QTabWidget*>();
  for (qsizetype i = 0; i < tabbed.size() && tabs.size() == tabbed.size(); ++i)
    tabbed[i]->setCurrentIndex(tabs[i].toInt());
}

}  // namespace mw::ui

#include "moc_page_stack.cpp"
