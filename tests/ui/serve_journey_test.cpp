// SPDX-License-Identifier: GPL-3.0-or-later
// From the paper's servers to a verdict on their comparison: both shipped sweeps are opened and simulated, dragged into
// the tray with the published cells, and the page says what is wrong with them. A picture at every station.
#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QDropEvent>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <cmath>

#include "core/base/files.h"
#include "tests/ui/window_fixture.h"
#include "ui/pages/compare/compare_page.h"
#include "ui/pages/compare/why_view.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/pages/serve/serve_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/session/run_controller.h"
#include "ui/shell/page_stack.h"
#include "ui/theme/text.h"

namespace mw::ui {

class ServeJourneyTest : public test::WindowFixture {
  Q_OBJECT

  int station_ = 0;
  ComparePage& page() { return window_->pages().compare; }
  void station(const QString& name) { picture(u"serve-journey-%1-%2"_s.arg(++station_).arg(name)); }
  // As a drag of the selected rows of the Runs table ends over the tray.
  void drag_selected_runs() {
    QTableView& table = window_->pages().runs.table();
    const std::unique_ptr<QMimeData> carried(table.model()->mimeData(table.selectionModel()->selectedRows()));
    window_->show_page(Page::compare);
    QDragEnterEvent enter({20, 20}, Qt::CopyAction, carried.get(), Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&page().tray(), &enter);
    QDropEvent event(QPointF(20, 20), Qt::CopyAction, carried.get(), Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&page().tray(), &event);
    QTRY_VERIFY(!page().is_busy());
  }
  void simulate(const char* example, const QString& picture_name) {
    window_->document().open_example(std::filesystem::path(MW_RESOURCES) / "examples" / example);
    QCOMPARE(window_->pages().serve.kind(), RunKind::sweep);  // what the document is about
    window_->show_page(Page::serve);
    press(u"Run Sweep"_s);
    QVERIFY(window_->runs().is_busy());
    QTRY_VERIFY(!window_->runs().is_busy());
    const RunPtr run = window_->runs().shown(RunKind::sweep);
    QVERIFY2(run->view.state() == RunState::done, run->view.error().c_str());
    window_->pages().serve.sweep().show_frame();
    QTRY_VERIFY(!window_->pages().serve.sweep().is_busy());
    QCOMPARE(window_->pages().serve.sweep().model().rowCount(), 40);  // 8 loads of 5 lengths
    for (const ChartLine& line : window_->pages().serve.sweep().ttft().lines())
      QCOMPARE(line.origin, LineOrigin::predicted);
    QCOMPARE(window_->pages().serve.sweep().timeline().requests(), 6);  // of the longest prompts
    QVERIFY2(!window_->pages().serve.sweep().verdict().isEmpty(), "no verdict on any length");
    station(picture_name);
  }
  // Cells that cannot be, by column, of rows whose key contains all of `parts`.
  int impossible(int column, const std::vector<std::string>& parts) {
    int found = 0;
    for (int r = 0; r < page().model().rowCount(); ++r) {
      const std::string& key = page().model().row(r).key;
      const bool about = std::all_of(parts.begin(), parts.end(),
                                     [&](const std::string& p) { return key.find(p) != std::string::npos; });
      found += about && page().model().index(r, column).data(ComparisonModel::impossible_role).toBool();
    }
    return found;
  }

 private slots:
  void the_papers_servers_are_simulated_compared_and_judged() {
    open_window(setup(), Page::serve);
    simulate("paper-serve-v6e-8.json", u"v6e-8"_s);
    simulate("paper-serve-2xh100.json", u"2xh100"_s);

    window_->show_page(Page::runs);
    window_->pages().runs.refresh();
    QCOMPARE(window_->pages().runs.model().rowCount(), 2);
    window_->pages().runs.table().selectAll();
    station(u"runs"_s);
    drag_selected_runs();
    QCOMPARE(page().runs().size(), size_t{2});
    station(u"two-simulations"_s);

    // The published cells, from the tray's own menu.
    QToolButton* add = page().tray().findChild<QToolButton*>(QString(), Qt::FindDirectChildrenOnly);
    emit add->menu()->aboutToShow();
    QAction* shipped = nullptr;
    for (QAction* a : add->menu()->actions())
      if (a->text().contains(u"paper-2605.25645"_s)) shipped = a;
    QVERIFY(shipped);
    shipped->trigger();
    QTRY_VERIFY(!page().is_busy());
    QVERIFY(page().runs().size() >= 4);

    // Published cells side by side: the GPU's first, as the paper does.
    const auto column_of = [&](const char* target) {
      for (size_t i = 0; i < page().runs().size(); ++i) {
        const auto& r = page().runs()[i];
        if (r.provenance == formats::ResultProvenance::imported && r.sweep->set.target == target &&
            r.name.find("burst") == std::string::npos)
          return static_cast<int>(i);
      }
      return -1;
    };
    page().move(column_of("2xh100"), 0);
    page().move(column_of("v6e-8"), 1);
    const QString verdict = page().verdict();
    QVERIFY2(verdict.startsWith(u"Confounded"_s) || verdict.startsWith(u"Not comparable"_s), qPrintable(verdict));
    QVERIFY2(verdict.contains(u"KV"_s, Qt::CaseInsensitive), qPrintable(verdict));
    // Both 16k times to the first token are below what the chips can do.
    QVERIFY(impossible(1, {"15360", "ttft"}) > 0);
    QVERIFY(impossible(2, {"15360", "ttft"}) > 0);
    QCOMPARE(impossible(1, {"512/", "ttft"}), 0);
    QCOMPARE(window_->width(), 1280);  // the page fits beside the form
    station(u"verdict"_s);

    QTest::keyClicks(&page().slo_field(0), u"500"_s);
    int over_slo = 0;
    for (int r = 0; r < page().model().rowCount(); ++r) {
      const auto& row = page().model().row(r);
      for (int c = 1; c < page().model().columnCount(); ++c) {
        const auto& value =
            row.values.size() >= static_cast<size_t>(c) ? row.values[static_cast<size_t>(c - 1)] : std::nullopt;
        const bool over = row.key.find("ttft_ms") != std::string::npos && value && *value > 500;
        if (row.kind == compare::ComparisonRow::Kind::result)
          QCOMPARE(page().model().index(r, c).data(ComparisonModel::over_slo_role).toBool(), over);
        over_slo += over;
      }
    }
    QVERIFY(over_slo > 0);
    station(u"slo"_s);

    for (const QString& view : {u"length"_s, u"pareto"_s, u"heat"_s, u"cost"_s}) {
      page().charts().show_view(view);
      station(u"view-%1"_s.arg(view));
    }
    // What explains the gap between the two simulations at 4,096 tokens and 4 requests/s.
    while (page().runs().front().provenance != formats::ResultProvenance::predicted) page().remove(0);
    page().charts().choose_cell(4096, u"4 requests/s"_s);
    page().charts().show_view(u"why"_s);
    WhyView& why = *page().charts().findChild<WhyView*>();
    QTRY_VERIFY2(!why.is_busy(), qPrintable(why.message()));
    QVERIFY2(why.shown().has_value(), qPrintable(why.message()));
    double at = why.shown()->from;
    for (const auto& part : why.shown()->parts) {
      QCOMPARE(part.before, at);
      at = part.after;
    }
    QCOMPARE(at, why.shown()->to);
    // Both ends and every factor have a bar, which begins where the one before it ends.
    const ChartBars& bars = why.chart().bars();
    QCOMPARE(bars.bars.size(), why.shown()->parts.size() + 2);
    for (size_t i = 0; i < why.shown()->parts.size(); ++i) {
      const auto& part = why.shown()->parts[i];
      QCOMPARE(bars.bars[i + 1].start, std::min(part.before, part.after));
      QCOMPARE(bars.bars[i + 1].values[1] + bars.bars[i + 1].values[2], std::abs(part.delta()));
      QVERIFY(bars.bars[i + 1].text.startsWith(part.delta() >= 0 ? u'+' : u'\u2212'));
    }
    QVERIFY(why.chart().axes().y().high >= std::max(why.shown()->from, why.shown()->to));
    station(u"why"_s);

    for (const char* extension : {"csv", "md", "tex", "png", "svg", "pdf"}) {
      const auto file = folder() / (std::string("paper.") + extension);
      page().export_to(file);
      QVERIFY2(std::filesystem::exists(file) && std::filesystem::file_size(file) > 200, extension);
    }
    QVERIFY(read_file(folder() / "paper.csv").find("ttft") != std::string::npos);
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::ServeJourneyTest)
#include "serve_journey_test.moc"
