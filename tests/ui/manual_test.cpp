// SPDX-License-Identifier: GPL-3.0-or-later
// The manual in the window: chapters, links, search, history, and the chapter of the page in use.
#include <QApplication>
#include <QLineEdit>
#include <QPushButton>
#include <QTest>
#include <QTextBlock>
#include <QTreeWidget>

#include "tests/ui/window_fixture.h"
#include "ui/manual/manual_window.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/theme/text.h"

using namespace mw;
using namespace mw::ui;

namespace {

std::filesystem::path manual_folder() {
  return std::filesystem::path(MW_RESOURCES) / "manual";
}

// Every place that a chapter's text links to.
QStringList links_of(const QTextDocument& document) {
  QStringList out;
  for (QTextBlock block = document.begin(); block.isValid(); block = block.next())
    for (auto it = block.begin(); !it.atEnd(); ++it)
      if (const QString href = it.fragment().charFormat().anchorHref(); !href.isEmpty()) out << href;
  return out;
}

bool has_heading(const QTextDocument& document, const QString& anchor) {
  for (QTextBlock block = document.begin(); block.isValid(); block = block.next())
    if (block.blockFormat().headingLevel() > 0 && manual_anchor(block.text()) == anchor) return true;
  return false;
}

bool has_section(const ManualChapter& chapter, const QString& anchor) {
  return std::any_of(chapter.sections.begin(), chapter.sections.end(),
                     [&](const ManualSection& section) { return section.anchor == anchor; });
}

}  // namespace

class ManualTest : public mw::test::WindowFixture {
  Q_OBJECT

 private slots:
  void reads_the_chapters_in_order() {
    const ManualBook book(manual_folder());
    QCOMPARE(book.chapters().size(), size_t{12});
    QCOMPARE(book.chapters().front().file, u"01-first-steps.md"_s);
    QCOMPARE(book.chapters().front().title, u"First steps"_s);
    QVERIFY(book.find(u"10-troubleshooting.md"_s));
    QVERIFY(!book.find(u"README.md"_s));
  }

  void search_finds_words_in_all_chapters() {
    const ManualBook book(manual_folder());
    const auto hits = book.search(u"store-busy"_s);
    QVERIFY(!hits.empty());
    QCOMPARE(hits.front().file, u"10-troubleshooting.md"_s);
    QVERIFY(hits.front().excerpt.contains(u"STORE-BUSY"_s));
    const auto by_heading = book.search(u"stop resume"_s);
    QVERIFY(!by_heading.empty());
    QVERIFY(by_heading.front().in_heading);
    QCOMPARE(by_heading.front().anchor, u"stop-and-resume"_s);
    QVERIFY(book.search(u"train.learning_rate"_s).size() >= 2);
    QVERIFY(book.search(u"no such words anywhere"_s).empty());
    QVERIFY(book.search(u"  "_s).empty());
  }

  void renders_every_chapter_with_its_links_and_images() {
    ManualWindow window(manual_folder(), nullptr);
    for (const ManualChapter& chapter : window.book().chapters()) {
      window.open_chapter(chapter.file);
      QCOMPARE(window.chapter(), chapter.file);
      QVERIFY2(window.browser().toPlainText().size() > 500, qPrintable(chapter.file));
      for (const ManualSection& section : chapter.sections)
        QVERIFY2(has_heading(*window.browser().document(), manual_anchor(section.heading)),
                 qPrintable(section.heading));
      const QUrl here = window.browser().source();
      for (const QString& link : links_of(*window.browser().document())) {
        const QUrl to = here.resolved(QUrl(link));
        if (!to.isLocalFile()) continue;
        const bool is_chapter = window.book().find(to.fileName());
        QVERIFY2(is_chapter || QFile::exists(to.toLocalFile()), qPrintable(chapter.file + u": "_s + link));
        if (to.fragment().isEmpty() || !is_chapter) continue;
        QVERIFY2(has_section(*window.book().find(to.fileName()), to.fragment()),
                 qPrintable(chapter.file + u": "_s + link));
      }
      for (QTextBlock b = window.browser().document()->begin(); b.isValid(); b = b.next())
        for (auto it = b.begin(); !it.atEnd(); ++it)
          if (const auto format = it.fragment().charFormat(); format.isImageFormat()) {
            const QVariant image =
                window.browser().document()->resource(QTextDocument::ImageResource, format.toImageFormat().name());
            QVERIFY2(image.isValid() && !image.isNull(), qPrintable(format.toImageFormat().name()));
          }
    }
  }

  void opens_a_heading_and_goes_back() {
    ManualWindow window(manual_folder(), nullptr);
    window.open_chapter(u"01-first-steps.md"_s);
    QVERIFY(!test::button_of(window, u"Back"_s).isEnabled());
    window.open_chapter(u"09-file-formats.md"_s, u"run-store"_s);
    const QTextCursor top = window.browser().cursorForPosition({5, 5});
    QCOMPARE(manual_anchor(top.block().text()), u"run-store"_s);
    QVERIFY(test::button_of(window, u"Back"_s).isEnabled());
    QTest::mouseClick(&test::button_of(window, u"Back"_s), Qt::LeftButton);
    QCOMPARE(window.chapter(), u"01-first-steps.md"_s);
    QTest::mouseClick(&test::button_of(window, u"Forward"_s), Qt::LeftButton);
    QCOMPARE(window.chapter(), u"09-file-formats.md"_s);
  }

  void search_field_shows_results_and_follows_them() {
    ManualWindow window(manual_folder(), nullptr);
    window.open_chapter(u"01-first-steps.md"_s);
    QApplication::setActiveWindow(&window);
    QTRY_VERIFY(window.isActiveWindow());
    QTest::keyClick(&window, Qt::Key_F, Qt::ControlModifier);
    QTRY_COMPARE(QApplication::focusWidget(), static_cast<QWidget*>(&window.search_field()));
    QTest::keyClicks(&window.search_field(), u"NAN-LOSS"_s);
    QVERIFY(window.results().isVisible());
    QVERIFY(!window.contents().isVisible());
    QVERIFY(window.results().topLevelItemCount() > 0);
    QTest::keyClick(&window.search_field(), Qt::Key_Return);
    QCOMPARE(window.chapter(), u"10-troubleshooting.md"_s);
    QCOMPARE(window.browser().textCursor().selectedText(), u"NAN-LOSS"_s);
    window.search_field().clear();
    QVERIFY(window.contents().isVisible());
  }

  void contents_open_chapters() {
    ManualWindow window(manual_folder(), nullptr);
    window.open_chapter(u"02-designing-a-mesh.md"_s);
    QCOMPARE(window.contents().currentItem()->text(0), u"Designing a mesh"_s);
    QTreeWidgetItem* first = window.contents().topLevelItem(2)->child(0);
    emit window.contents().itemClicked(first, 0);
    QCOMPARE(window.chapter(), u"03-training.md"_s);
  }

  void f1_opens_the_chapter_of_the_page() {
    open_window(setup(std::filesystem::path(MW_RESOURCES) / "examples" / "paper-train-v5p-8.json"), Page::design);
    for (const auto& [page, file] : {std::pair(Page::design, u"02-designing-a-mesh.md"_s),
                                     {Page::data, u"03-training.md"_s},
                                     {Page::train, u"03-training.md"_s},
                                     {Page::serve, u"04-serving-and-sweeps.md"_s},
                                     {Page::compare, u"05-comparing-and-auditing.md"_s},
                                     {Page::runs, u"05-comparing-and-auditing.md"_s}}) {
      window_->show_page(page);
      window_->actions()[u"help.manual"_s]->trigger();
      auto* manual = window_->findChild<ManualWindow*>();
      QVERIFY(manual && manual->isVisible());
      QVERIFY(!manual->isModal());
      QCOMPARE(manual->chapter(), file);
      manual->close();
    }
    QCOMPARE(window_->actions()[u"help.manual"_s]->shortcut(), QKeySequence(Qt::Key_F1));
  }
};

QTEST_MAIN(ManualTest)
#include "manual_test.moc"
