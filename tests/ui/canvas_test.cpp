// SPDX-License-Identifier: GPL-3.0-or-later
#include <QDir>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <QWheelEvent>
#include <QWindow>

#include "core/model/catalogue.h"
#include "tests/mesh/targets.h"
#include "tests/ui/support.h"
#include "ui/pages/design/axis_edit.h"
#include "ui/pages/design/mesh_canvas.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

Q_DECLARE_METATYPE(mw::designer::MeshDesign)

namespace mw::ui {
namespace {

CanvasDesign design_of(const std::string& model, hardware::Target target, mesh::Mesh mesh,
                       mesh::ShardingRules rules = {}) {
  CanvasDesign d;
  d.choice = {std::move(mesh), {}, std::move(rules)};
  d.target = std::move(target);
  d.inventory = std::make_shared<model::TensorInventory>(model::catalogue_config(model));
  d.placement = std::make_shared<mesh::Placement>(
      mesh::place(*d.inventory, d.choice.mesh, d.choice.rules, {}, mesh::ShardingUse::training));
  d.caption = u"test target"_s;
  return d;
}

mesh::Mesh two(int fsdp, int tp) {
  return {{{"fsdp", fsdp}, {"tp", tp}}};
}

// Pixels of about this colour in a part of the picture.
int pixels_of(const QImage& image, const QRectF& area, const QColor& color) {
  int count = 0;
  const QRect part = area.toRect().intersected(image.rect());
  for (int y = part.top(); y <= part.bottom(); ++y)
    for (int x = part.left(); x <= part.right(); ++x) {
      const QColor c = image.pixelColor(x, y);
      count +=
          std::abs(c.red() - color.red()) + std::abs(c.green() - color.green()) + std::abs(c.blue() - color.blue()) <
          12;
    }
  return count;
}

}  // namespace

class CanvasTest : public QObject {
  Q_OBJECT
  test::WarningWatch warnings_;
  std::unique_ptr<MeshCanvas> canvas_;
  std::unique_ptr<QSignalSpy> previewed_, ended_, dropped_, refused_;

  void show(CanvasDesign design, const std::string& tensor = "layers.5.q_proj") {
    canvas_->set_design(std::move(design));
    canvas_->set_tensor(tensor);
    for (QSignalSpy* spy : {previewed_.get(), ended_.get(), dropped_.get(), refused_.get()}) spy->clear();
  }
  QWindow* window() { return canvas_->window()->windowHandle(); }
  QPoint middle(QWidget* w) { return w->mapTo(canvas_.get(), w->rect().center()); }
  // As a hand does it: press, some moves, release where it ends.
  void drag(const QString& axis, QPoint to, bool let_go = true) {
    const QPoint from = middle(canvas_->chip(axis));
    QTest::mousePress(window(), Qt::LeftButton, {}, from);
    for (int i = 1; i <= 6; ++i) QTest::mouseMove(window(), from + (to - from) * i / 6);
    if (let_go) QTest::mouseRelease(window(), Qt::LeftButton, {}, to);
  }
  designer::MeshDesign last(QSignalSpy& spy) { return spy.last().at(0).value<designer::MeshDesign>(); }
  QStringList values() {
    QStringList out;
    for (const auto* button : canvas_->findChildren<QPushButton*>())
      if (button->isVisible()) out << button->text();
    return out;
  }
  void save(const QString& name) { test::save_picture(*canvas_, u"canvas-"_s % name); }

 private slots:
  void init() {
    warnings_.start();
    apply(make_theme(Shade::light), *qApp);
    canvas_ = std::make_unique<MeshCanvas>();
    canvas_->resize(760, 420);
    previewed_ = std::make_unique<QSignalSpy>(canvas_.get(), &MeshCanvas::previewed);
    ended_ = std::make_unique<QSignalSpy>(canvas_.get(), &MeshCanvas::preview_ended);
    dropped_ = std::make_unique<QSignalSpy>(canvas_.get(), &MeshCanvas::dropped);
    refused_ = std::make_unique<QSignalSpy>(canvas_.get(), &MeshCanvas::refused);
    canvas_->show();
    QVERIFY(QTest::qWaitForWindowExposed(canvas_.get()));
    canvas_->activateWindow();
    show(design_of("gemma4-31b", mesh::tpu({2, 4}), two(2, 4)));
  }
  void cleanup() {
    canvas_.reset();
    QCOMPARE(warnings_.take().join(u"; "_s), QString());
  }

  void a_size_is_dragged_with_a_preview_before_the_drop() {
    const QPoint to = middle(canvas_->chip(u"tp"_s)) - QPoint(28, 0);
    drag(u"tp"_s, to, false);
    QVERIFY(canvas_->is_previewing());
    QCOMPARE(last(*previewed_).mesh, two(4, 2));
    QCOMPARE(canvas_->shown().mesh, two(4, 2));
    QCOMPARE(dropped_->count(), 0);
    QTest::mouseRelease(window(), Qt::LeftButton, {}, to);
    QCOMPARE(dropped_->count(), 1);
    QCOMPARE(last(*dropped_).mesh, two(4, 2));
    QCOMPARE(dropped_->last().at(1).toString(), u"fsdp 2 to 4, tp 4 to 2"_s);
  }

  void eight_ways_are_refused_at_the_axis_with_the_sizes_that_help() {
    drag(u"tp"_s, middle(canvas_->chip(u"tp"_s)) + QPoint(28, 4));
    QCOMPARE(dropped_->count(), 0);
    QVERIFY2(canvas_->callout().startsWith(u"4 KV heads cannot be split over tp 8 (k_proj"_s),
             qPrintable(canvas_->callout()));
    QVERIFY(refused_->count() >= 1);
    QCOMPARE(canvas_->shown().mesh, two(2, 4));
    save(u"refused"_s);
    // Below the axes, and over nothing else.
    const QRectF callout = canvas_->places().callout();
    QVERIFY(callout.top() >= canvas_->chip(u"tp"_s)->geometry().bottom());
    for (int i = 0; i < 8; ++i) QVERIFY(!callout.intersects(canvas_->places().device_at(i)));
    for (int i = 0; i < 3; ++i) QVERIFY(!callout.intersects(canvas_->places().tensor_dimension_at(i)));
    for (int i = 0; i < 2; ++i) QVERIFY(!callout.intersects(canvas_->places().side_at(i)));
    // tp is 4 already, so 4 does not help.
    QCOMPARE(values(), (QStringList{u"tp 1"_s, u"tp 2"_s}));
    QTest::mouseClick(&test::button_of(*canvas_, u"tp 2"_s), Qt::LeftButton);
    QTRY_COMPARE(dropped_->count(), 1);
    QCOMPARE(last(*dropped_).mesh, two(4, 2));
    QVERIFY(canvas_->message().isEmpty());
    QCOMPARE(values(), QStringList());
  }

  void a_broken_design_offers_all_sizes_that_help() {
    show(design_of("gemma4-31b", mesh::tpu({2, 4}), two(1, 8)));
    QTest::keyClick(canvas_->chip(u"tp"_s), Qt::Key_Up);  // sixteen
    QTest::keyClick(canvas_->chip(u"tp"_s), Qt::Key_Return);
    QCOMPARE(values(), (QStringList{u"tp 1"_s, u"tp 2"_s, u"tp 4"_s}));
    QTest::mouseClick(&test::button_of(*canvas_, u"tp 4"_s), Qt::LeftButton);
    QTRY_COMPARE(dropped_->count(), 1);
    QCOMPARE(last(*dropped_).mesh, two(2, 4));
  }

  void a_drag_says_what_it_changes() {
    drag(u"tp"_s, middle(canvas_->chip(u"tp"_s)) - QPoint(28, 0), false);
    QCOMPARE(canvas_->callout(), u"fsdp 2 to 4, tp 4 to 2\n\u2026"_s);  // not predicted yet
    canvas_->set_preview_text(u"8.60 to 18.9 s (+120 %)"_s);
    QCOMPARE(canvas_->callout(), u"fsdp 2 to 4, tp 4 to 2\n8.60 to 18.9 s (+120 %)"_s);
    save(u"change"_s);
    QTest::keyClick(canvas_->chip(u"tp"_s), Qt::Key_Escape);
    QCOMPARE(canvas_->callout(), QString());
  }

  void the_colour_of_an_axis_follows_its_name() {
    const auto bars = [this](const QColor& color) {
      return pixels_of(canvas_->grab().toImage(), canvas_->chip(u"tp"_s)->geometry(), color);
    };
    QVERIFY(bars(axis_color(u"tp"_s)) > 20);
    show(design_of("gemma4-31b", mesh::tpu({2, 4}), {{{"tp", 4}, {"fsdp", 1}, {"data", 2}}}));
    QVERIFY(bars(axis_color(u"tp"_s)) > 20);
    QVERIFY(axis_color(u"tp"_s) != axis_color(u"fsdp"_s) && axis_color(u"fsdp"_s) != axis_color(u"data"_s));
  }

  void an_axis_is_laid_on_a_side() {
    show(design_of("gemma4-31b", mesh::tpu({2, 4}), two(4, 2)));
    drag(u"fsdp"_s, canvas_->places().side_at(1).center().toPoint());
    QCOMPARE(dropped_->count(), 1);
    QCOMPARE(last(*dropped_).places, (std::vector<mesh::RequestedPlacement>{{"fsdp", {1}}}));
    show(design_of("gemma4-31b", mesh::tpu({2, 4}), two(4, 2)));
    drag(u"fsdp"_s, canvas_->places().side_at(0).center().toPoint());
    QCOMPARE(dropped_->count(), 0);
    QVERIFY2(canvas_->message().contains(u"does not fit"_s), qPrintable(canvas_->message()));
  }

  void an_axis_is_dropped_on_a_dimension_of_the_tensor() {
    drag(u"tp"_s, canvas_->places().tensor_dimension_at(1).center().toPoint(), false);
    QVERIFY(canvas_->is_previewing());
    save(u"preview"_s);
    QTest::mouseRelease(window(), Qt::LeftButton, {}, canvas_->places().tensor_dimension_at(1).center().toPoint());
    QCOMPARE(dropped_->count(), 1);
    const auto rules = last(*dropped_).rules.overrides;
    QCOMPARE(rules.size(), size_t{1});
    QCOMPARE(qs(mesh::to_text(rules[0].spec)), u"(-, (fsdp, tp), -)"_s);
  }

  void letting_go_beside_everything_and_escape_change_nothing() {
    drag(u"tp"_s, canvas_->places().device_at(0).center().toPoint());
    QCOMPARE(dropped_->count(), 0);
    drag(u"tp"_s, canvas_->places().tensor_dimension_at(1).center().toPoint(), false);
    QVERIFY(canvas_->is_previewing());
    QTest::keyClick(canvas_->chip(u"tp"_s), Qt::Key_Escape);
    QVERIFY(!canvas_->is_previewing());
    QVERIFY(ended_->count() >= 1);
    QTest::mouseRelease(window(), Qt::LeftButton, {}, canvas_->places().tensor_dimension_at(1).center().toPoint());
    QCOMPARE(dropped_->count(), 0);
    QCOMPARE(canvas_->shown().mesh, two(2, 4));
  }

  void the_keys_do_all_of_it() {
    AxisChip* tp = canvas_->chip(u"tp"_s);
    tp->setFocus();
    QTest::keyClick(tp, Qt::Key_Minus);
    QVERIFY(canvas_->is_previewing());
    QTest::keyClick(tp, Qt::Key_Down);
    QCOMPARE(last(*previewed_).mesh, two(8, 1));
    QTest::keyClick(tp, Qt::Key_Up);
    QTest::keyClick(tp, Qt::Key_Enter);
    QCOMPARE(last(*dropped_).mesh, two(4, 2));
    // Space picks up; the arrows go over sides, dimensions and away; Enter puts down.
    canvas_->set_design(design_of("gemma4-31b", mesh::tpu({2, 4}), two(2, 4)));
    dropped_->clear();
    QTest::keyClick(tp, Qt::Key_Space);
    QVERIFY(canvas_->message().contains(u"does not fit"_s));  // rows have two chips
    QTest::keyClick(tp, Qt::Key_Right);
    QVERIFY(canvas_->is_previewing());
    QTest::keyClick(tp, Qt::Key_Return);
    QCOMPARE(last(*dropped_).places, (std::vector<mesh::RequestedPlacement>{{"tp", {1}}}));
    dropped_->clear();
    canvas_->set_design(design_of("gemma4-31b", mesh::tpu({2, 4}), two(2, 4)));
    QTest::keyClick(tp, Qt::Key_Space);
    for (int i = 0; i < 3; ++i) QTest::keyClick(tp, Qt::Key_Right);
    QTest::keyClick(tp, Qt::Key_Space);
    QCOMPARE(qs(mesh::to_text(last(*dropped_).rules.overrides.at(0).spec)), u"(-, (fsdp, tp), -)"_s);
    // Escape and leaving take back.
    QTest::keyClick(tp, Qt::Key_Up);
    QTest::keyClick(tp, Qt::Key_Escape);
    QVERIFY(canvas_->message().isEmpty());
    QTest::keyClick(tp, Qt::Key_Down);
    canvas_->chip(u"fsdp"_s)->setFocus();
    QTRY_VERIFY(!canvas_->is_previewing());
  }

  void the_wheel_previews_and_settles() {
    AxisChip* tp = canvas_->chip(u"tp"_s);
    const QPointF at = tp->rect().center();
    QWheelEvent down(at, tp->mapToGlobal(at), {}, {0, -120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QApplication::sendEvent(tp, &down);
    QVERIFY(canvas_->is_previewing());
    QCOMPARE(dropped_->count(), 0);
    QTRY_COMPARE(dropped_->count(), 1);
    QCOMPARE(last(*dropped_).mesh, two(4, 2));
  }

  void axes_are_added_and_taken_away() {
    QTest::mouseClick(canvas_->findChild<QToolButton*>(), Qt::LeftButton);
    QCOMPARE(qs(mesh::to_text(last(*dropped_).mesh)), u"data 1, fsdp 2, tp 4"_s);
    show(design_of("gemma4-31b", mesh::tpu({2, 4}), {{{"data", 1}, {"fsdp", 2}, {"tp", 4}}}));
    QTest::keyClick(canvas_->chip(u"data"_s), Qt::Key_Delete);
    QCOMPARE(last(*dropped_).mesh, two(2, 4));
    show(design_of("gemma4-31b", mesh::tpu({2, 4}), two(2, 4)));
    QTest::keyClick(canvas_->chip(u"tp"_s), Qt::Key_Delete);
    QCOMPARE(dropped_->count(), 0);
    QVERIFY(canvas_->message().contains(u"only an axis of one device"_s));
  }

  void a_mesh_unlike_its_target_says_so_and_can_be_put_right() {
    show(design_of("gemma4-31b", mesh::tpu({2, 2, 1}), two(2, 4)));
    QVERIFY(canvas_->callout() == u"mesh uses 8 devices; target has 4"_s);
    canvas_->grab();
    QTest::keyClick(canvas_->chip(u"tp"_s), Qt::Key_Down);
    QTest::keyClick(canvas_->chip(u"tp"_s), Qt::Key_Enter);
    QCOMPARE(last(*dropped_).mesh, two(2, 2));
    canvas_->set_design({});  // nothing is known yet
    canvas_->grab();
  }

  void every_device_shows_its_piece_and_its_memory() {
    canvas_->set_memory({0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 0.1, 0.0});
    const QImage image = canvas_->grab().toImage();
    const auto views = designer::piece_areas(
        *mesh::find_tensor(*design_of("gemma4-31b", mesh::tpu({2, 4}), two(2, 4)).placement, "layers.5.q_proj"),
        two(2, 4), mesh::lay_out(two(2, 4), mesh::tpu({2, 4})));
    for (int d = 0; d < 8; ++d) {
      const QRectF box = canvas_->places().device_at(d);
      QVERIFY(pixels_of(image, box, theme().series(static_cast<int>(views[static_cast<size_t>(d)].index))) > 20);
      QCOMPARE(pixels_of(image, box, theme().bad) > 20, d == 5);
    }
    QVERIFY(pixels_of(image, canvas_->places().device_at(3), theme().accent) >
            2 * pixels_of(image, canvas_->places().device_at(0), theme().accent));
  }

  void devices_are_reached_by_keys_and_told() {
    canvas_->setFocus();
    QSignalSpy chosen(canvas_.get(), &MeshCanvas::device_selected);
    QTest::keyClick(canvas_.get(), Qt::Key_Right);
    QTest::keyClick(canvas_.get(), Qt::Key_Right);
    QTest::keyClick(canvas_.get(), Qt::Key_Down);
    QCOMPARE(chosen.last().at(0).toInt(), 5);
    QVERIFY2(canvas_->accessibleDescription().contains(u"device 5 at 1, 1; fsdp 1, tp 1; piece"_s),
             qPrintable(canvas_->accessibleDescription()));
    QTest::mouseClick(window(), Qt::LeftButton, {}, canvas_->places().device_at(6).center().toPoint());
    QCOMPARE(chosen.last().at(0).toInt(), 6);
  }

  void screen_readers_can_name_everything() {
    QCOMPARE(test::unnamed(*canvas_), QStringList());
    QVERIFY(canvas_->chip(u"tp"_s)->accessibleName().contains(u"tp, 4 devices"_s));
    QVERIFY(canvas_->chip(u"tp"_s)->accessibleDescription().contains(u"line of 4: columns"_s));
    QVERIFY(canvas_->summary().contains(u"layers.5.q_proj (tp, fsdp, -), 8 pieces"_s));
  }

  void the_network_between_slices_has_the_colours_of_its_axes() {
    CanvasDesign design =
        design_of("gemma4-31b", mesh::slices(2, mesh::tpu({2, 4})), {{{"data", 2}, {"fsdp", 2}, {"tp", 4}}});
    show(design);
    save(u"two-slices"_s);
    // Between the slices, at half the height of the grid.
    const QRectF last = canvas_->places().device_at(3), next = canvas_->places().device_at(8);
    const QRectF gap(QPointF(last.right(), last.top()), QPointF(next.left(), canvas_->places().device_at(7).bottom()));
    const auto in_gap = [&](const QString& axis) {
      return pixels_of(canvas_->grab().toImage(), gap, axis_color(axis));
    };
    const int data = in_gap(u"data"_s), fsdp = in_gap(u"fsdp"_s);
    QVERIFY2(data > 40 && fsdp == 0, qPrintable(QString::number(data) + u' ' + QString::number(fsdp)));
    QVERIFY(canvas_->summary().contains(u"data crosses the network"_s));
    design.choice.places = {{"fsdp", {0}}, {"data", {1}}};
    show(design);
    QVERIFY(in_gap(u"fsdp"_s) > 40 && in_gap(u"data"_s) == 0);
    QCOMPARE(canvas_->summary().count(u"crosses the network"_s), 1);
  }

  void every_topology_in_both_themes() {
    struct Shown {
      const char* name;
      hardware::Target target;
      mesh::Mesh mesh;
      const char* model;
    };
    const std::vector<Shown> all{{"v5p-8", mesh::tpu({2, 2, 1}), two(1, 4), "gemma4-31b"},
                                 {"v6e-8", mesh::tpu({2, 4}), two(2, 4), "gemma4-31b"},
                                 {"v5e-256", mesh::tpu({16, 16}, {true, true}), two(64, 4), "gemma4-31b"},
                                 {"v5p-128", mesh::tpu({4, 4, 4}, {true, true, true}), two(16, 4), "gemma4-31b"},
                                 {"tpu7x-8", mesh::tpu({2, 2, 1}, {}, 2), two(4, 2), "gemma4-31b"},
                                 {"16xv5e-256",
                                  mesh::slices(16, mesh::tpu({16, 16}, {true, true})),
                                  {{{"data", 16}, {"fsdp", 64}, {"tp", 4}}},
                                  "gemma4-31b"},
                                 {"2xh100", mesh::gpus({2}), two(2, 1), "gemma4-31b"},
                                 {"32xh100", mesh::gpus({4, 8}), two(8, 4), "gemma4-31b"},
                                 {"cpu", mesh::cpu(), two(2, 4), "gemma3-4b"}};
    for (const Shade shade : {Shade::light, Shade::dark}) {
      apply(make_theme(shade), *qApp);
      for (const Shown& s : all) {
        show(design_of(s.model, s.target, s.mesh));
        QVERIFY2(canvas_->message().isEmpty(), s.name);
        canvas_->set_memory({0.28});
        canvas_->set_traffic({{u"tp"_s, u"all-reduce over tp, 66 MB, 0.37 ms"_s, u"66 MB"_s},
                              {u"fsdp"_s, u"all-gather over fsdp, 22 MB, 0.12 ms"_s, u"22 MB"_s}});
        save(qs(s.name) % (shade == Shade::dark ? u"-dark"_s : u""_s));
        for (int d = 0; d < s.mesh.devices(); ++d) {
          const QRectF box = canvas_->places().device_at(d);
          QVERIFY(box.width() >= 3 && QRectF(canvas_->rect()).contains(box));
        }
      }
    }
  }

  void a_small_window_still_shows_all_of_it() {
    canvas_->resize(340, 260);
    show(design_of("gemma4-31b", mesh::tpu({16, 16}, {true, true}), two(64, 4)));
    save(u"small"_s);
    for (int d : {0, 255}) QVERIFY(QRectF(canvas_->rect()).contains(canvas_->places().device_at(d)));
    QVERIFY(QRectF(canvas_->rect()).contains(canvas_->places().tensor_dimension_at(2)));
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::CanvasTest)
#include "canvas_test.moc"
