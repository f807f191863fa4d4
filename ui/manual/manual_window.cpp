// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/manual/manual_window.h"

#include <QAbstractTextDocumentLayout>
#include <QLineEdit>
#include <QRegularExpression>
#include <QScrollBar>
#include <QShortcut>
#include <QTextBlock>
#include <QTextTable>
#include <QTreeWidget>
#include <algorithm>

#include "core/base/files.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr qsizetype kExcerpt = 140, kBefore = 12;  // characters

// The displayed text of a Markdown line, without markup.
QString plain_text(QString markdown) {
  static const QRegularExpression kLink(u"!?\\[([^\\]]*)\\]\\([^)]*\\)"_s), kComment(u"<!--.*?-->"_s);
  markdown.replace(kComment, QString()).replace(kLink, u"\\1"_s);
  return markdown.remove(u'`').remove(u'*').replace(u'|', u' ').simplified();
}

ManualChapter read_chapter(const QString& file, const QString& text) {
  ManualChapter chapter{.file = file, .title = file, .sections = {}};
  bool fenced = false;
  for (const QString& line : text.split(u'\n')) {
    if (line.startsWith(u"```"_s)) fenced = !fenced;
    const qsizetype level = fenced ? 0 : line.indexOf(u' ');
    const bool heading = level > 0 && level <= 6 && line.left(level) == QString(level, u'#');
    if (heading) {
      const QString title = plain_text(line.mid(level + 1));
      chapter.sections.push_back({title, level == 1 ? QString() : manual_anchor(title), static_cast<int>(level), {}});
      if (level == 1) chapter.title = title;
    } else if (!chapter.sections.empty()) {
      chapter.sections.back().text += line + u'\n';
    }
  }
  return chapter;
}

QString excerpt_around(const QString& text, const QString& word) {
  const QString line = plain_text(text);
  const qsizetype at = std::max<qsizetype>(0, line.indexOf(word, 0, Qt::CaseInsensitive) - kBefore);
  return (at > 0 ? u"\u2026"_s : QString()) + line.mid(at, kExcerpt) +
         (at + kExcerpt < line.size() ? u"\u2026"_s : QString());
}

}  // namespace

QString manual_anchor(const QString& heading) {
  QString out;
  for (const QChar c : heading) {
    if (c.isLetterOrNumber() || c == u'_' || c == u'-')
      out += c.toLower();
    else if (c == u' ')
      out += u'-';
  }
  return out;
}

ManualBook::ManualBook(const std::filesystem::path& folder) {
  const QDir dir(qpath(folder));
  for (const QString& file : dir.entryList({u"[0-9][0-9]-*.md"_s}, QDir::Files, QDir::Name)) try {
      chapters_.push_back(read_chapter(file, qs(read_file(fspath(dir.filePath(file))))));
    } catch (const Error&) {  // the other chapters can be read
    }
}

const ManualChapter* ManualBook::find(const QString& file) const {
  const auto at = std::find_if(chapters_.begin(), chapters_.end(), [&](const auto& c) { return c.file == file; });
  return at == chapters_.end() ? nullptr : &*at;
}

std::vector<ManualHit> ManualBook::search(const QString& query) const {
  const QStringList words = query.simplified().split(u' ', Qt::SkipEmptyParts);
  std::vector<ManualHit> hits;
  if (words.isEmpty()) return hits;
  const auto contains_all = [&](const QString& text) {
    return std::all_of(words.begin(), words.end(),
                       [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
  };
  for (const ManualChapter& chapter : chapters_)
    for (const ManualSection& section : chapter.sections) {
      const bool in_heading = contains_all(section.heading);
      if (!in_heading && !contains_all(section.heading + u' ' + section.text)) continue;
      hits.push_back({chapter.file, section.anchor, chapter.title, section.heading,
                      excerpt_around(section.text, words.front()), in_heading});
    }
  std::stable_sort(hits.begin(), hits.end(),
                   [](const ManualHit& a, const ManualHit& b) { return a.in_heading > b.in_heading; });
  return hits;
}

namespace {

enum ManualRole { kFile = Qt::UserRole, kAnchor };

constexpr int kImageWidth = 680;  // pixels; wider ones are scaled down

// Qt draws Markdown tables without lines and padding.
void style_tables(QTextDocument& document) {
  QTextCursor together(&document);  // one new layout for all
  together.beginEditBlock();
  for (QTextFrame* frame : document.rootFrame()->childFrames())
    if (auto* table = qobject_cast<QTextTable*>(frame)) {
      QTextTableFormat format = table->format();
      format.setBorderCollapse(true);
      format.setBorder(1);
      format.setBorderBrush(theme().line);
      format.setBorderStyle(QTextFrameFormat::BorderStyle_Solid);
      format.setCellPadding(4);
      format.setCellSpacing(0);
      format.setWidth(QTextLength(QTextLength::PercentageLength, 100));
      table->setFormat(format);
    }
  together.endEditBlock();
}

}  // namespace

ManualBrowser::ManualBrowser(const std::filesystem::path& folder, QWidget* parent)
    : QTextBrowser(parent), folder_(qpath(folder)) {
  setAccessibleName(tr("Chapter of the manual"));
  setOpenExternalLinks(true);
  setSearchPaths({folder_});
}

void ManualBrowser::open(const QString& file, const QString& anchor) {
  QUrl url = QUrl::fromLocalFile(folder_ + u'/' + file);
  if (!anchor.isEmpty()) url.setFragment(anchor);
  setSource(url, QTextDocument::MarkdownResource);
}

void ManualBrowser::doSetSource(const QUrl& name, QTextDocument::ResourceType type) {
  const bool other = name.isRelative() ? !name.path().isEmpty() : name.path() != source().path();
  QTextCursor cursor(document());
  cursor.beginEditBlock();  // otherwise every paragraph causes a new layout, which takes seconds for a long chapter
  QTextBrowser::doSetSource(name, type);
  cursor.endEditBlock();
  if (other) restyle();
  scroll_to_heading(name.fragment());
}

QVariant ManualBrowser::loadResource(int type, const QUrl& name) {
  QVariant resource = QTextBrowser::loadResource(type, name);
  if (type == QTextDocument::MarkdownResource) {  // Qt parses the text after a comment as HTML
    static const QRegularExpression kComment(u"<!--.*?-->\n?"_s);
    return QString::fromUtf8(resource.toByteArray()).remove(kComment).toUtf8();
  }
  if (type != QTextDocument::ImageResource) return resource;
  const QImage image = resource.canConvert<QByteArray>() ? QImage::fromData(resource.toByteArray()) : QImage();
  return image.width() > kImageWidth ? image.scaledToWidth(kImageWidth, Qt::SmoothTransformation) : image;
}

void ManualBrowser::restyle() {
  document()->setDocumentMargin(14);
  style_tables(*document());
}

void ManualBrowser::scroll_to_heading(const QString& anchor) {
  if (anchor.isEmpty()) return;
  for (QTextBlock block = document()->begin(); block.isValid(); block = block.next())
    if (block.blockFormat().headingLevel() > 0 && manual_anchor(block.text()) == anchor) {
      const QRectF at = document()->documentLayout()->blockBoundingRect(block);
      verticalScrollBar()->setValue(static_cast<int>(at.top()));
      return;
    }
}

ManualWindow::ManualWindow(const std::filesystem::path& folder, QWidget* parent) : QDialog(parent), book_(folder) {
  setWindowTitle(tr("Manual"));
  setWindowFlag(Qt::Window);
  setModal(false);
  resize(1080, 760);
  browser_ = new ManualBrowser(folder, this);
  build();
  fill_contents();
}

void ManualWindow::build() {
  search_ = new QLineEdit(this);
  search_->setPlaceholderText(tr("Search all chapters"));
  search_->setAccessibleName(tr("Search all chapters"));
  search_->setClearButtonEnabled(true);
  found_ = muted_label(QString(), this);
  found_->hide();
  back_ = new QPushButton(tr("Back"), this);
  forward_ = new QPushButton(tr("Forward"), this);
  back_->setToolTip(tr("Go back to the previously shown section (Alt+Left)"));
  forward_->setToolTip(tr("Go forward to the next shown section (Alt+Right)"));
  for (QPushButton* b : {back_, forward_}) b->setAutoDefault(false), b->setEnabled(false);
  contents_ = make_tree(tr("Contents of the manual"));
  results_ = make_tree(tr("Search results"));
  results_->setRootIsDecorated(false);
  results_->hide();
  lay_out();
  connect_controls();
}

QTreeWidget* ManualWindow::make_tree(const QString& name) {
  auto* tree = new QTreeWidget(this);
  tree->setHeaderHidden(true);
  tree->setAccessibleName(name);
  tree->setUniformRowHeights(false);
  tree->setWordWrap(true);
  connect(tree, &QTreeWidget::itemClicked, this, &ManualWindow::follow);
  connect(tree, &QTreeWidget::itemActivated, this, &ManualWindow::follow);
  return tree;
}

void ManualWindow::lay_out() {
  auto* left = new QWidget(this);
  auto* column = flush_layout<QVBoxLayout>(left);
  for (QWidget* widget : std::initializer_list<QWidget*>{search_, found_, contents_, results_})
    column->addWidget(widget);
  auto* right = new QWidget(this);
  auto* text = flush_layout<QVBoxLayout>(right);
  auto* row = new QHBoxLayout;
  row->addWidget(back_);
  row->addWidget(forward_);
  row->addStretch(1);
  text->addLayout(row);
  text->addWidget(browser_, 1);
  auto* splitter = new QSplitter(this);
  splitter->addWidget(left);
  splitter->addWidget(right);
  set_shares(*splitter, {300, 780}, {0, 1});
  (new QVBoxLayout(this))->addWidget(splitter);
}

void ManualWindow::connect_controls() {
  connect(back_, &QPushButton::clicked, browser_, &QTextBrowser::backward);
  connect(forward_, &QPushButton::clicked, browser_, &QTextBrowser::forward);
  connect(browser_, &QTextBrowser::backwardAvailable, back_, &QPushButton::setEnabled);
  connect(browser_, &QTextBrowser::forwardAvailable, forward_, &QPushButton::setEnabled);
  connect(browser_, &QTextBrowser::sourceChanged, this, [this](const QUrl& url) { mark_chapter(url.fileName()); });
  connect(search_, &QLineEdit::textChanged, this, &ManualWindow::show_results);
  connect(search_, &QLineEdit::returnPressed, this, [this] {
    if (results_->topLevelItemCount() > 0) follow(results_->topLevelItem(0));
  });
  connect(new QShortcut(QKeySequence::Find, this), &QShortcut::activated, this, [this] {
    search_->setFocus();
    search_->selectAll();
  });
  connect(new QShortcut(Qt::ALT | Qt::Key_Left, this), &QShortcut::activated, browser_, &QTextBrowser::backward);
  connect(new QShortcut(Qt::ALT | Qt::Key_Right, this), &QShortcut::activated, browser_, &QTextBrowser::forward);
}

void ManualWindow::fill_contents() {
  for (const ManualChapter& chapter : book_.chapters()) {
    auto* top = new QTreeWidgetItem(contents_, {chapter.title});
    top->setData(0, kFile, chapter.file);
    for (const ManualSection& section : chapter.sections) {
      if (section.level != 2) continue;
      auto* item = new QTreeWidgetItem(top, {section.heading});
      item->setData(0, kFile, chapter.file);
      item->setData(0, kAnchor, section.anchor);
    }
  }
}

void ManualWindow::open_chapter(const QString& file, const QString& anchor) {
  if (book_.find(file)) browser_->open(file, anchor);
  show();
  activateWindow();
}

void ManualWindow::show_results() {
  const QString query = search_->text().simplified();
  const bool searching = !query.isEmpty();
  results_->clear();
  contents_->setVisible(!searching);
  results_->setVisible(searching);
  found_->setVisible(searching);
  if (!searching) return;
  const std::vector<ManualHit> hits = book_.search(query);
  found_->setText(hits.empty() ? tr("No section contains these words")
                               : tr("%n section(s)", nullptr, static_cast<int>(hits.size())));
  for (const ManualHit& hit : hits) {
    const QString place = hit.anchor.isEmpty() ? hit.chapter : tr("%1: %2").arg(hit.chapter, hit.heading);
    auto* item = new QTreeWidgetItem(results_, {place + u'\n' + hit.excerpt});
    item->setData(0, kFile, hit.file);
    item->setData(0, kAnchor, hit.anchor);
  }
}

void ManualWindow::follow(const QTreeWidgetItem* item) {
  browser_->open(item->data(0, kFile).toString(), item->data(0, kAnchor).toString());
  const QString query = search_->text().simplified();
  if (query.isEmpty()) return;
  // Selects the first match of the query below the heading.
  QTextCursor cursor = browser_->cursorForPosition({0, 0});
  cursor = browser_->document()->find(query, cursor);
  if (cursor.isNull())
    cursor = browser_->document()->find(query.section(u' ', 0, 0), browser_->cursorForPosition({0, 0}));
  if (!cursor.isNull()) browser_->setTextCursor(cursor);
}

void ManualWindow::mark_chapter(const QString& file) {
  for (int i = 0; i < contents_->topLevelItemCount(); ++i) {
    QTreeWidgetItem* item = contents_->topLevelItem(i);
    const bool shown = item->data(0, kFile).toString() == file;
    item->setExpanded(shown);
    if (shown) contents_->setCurrentItem(item);
  }
}

void ManualWindow::changeEvent(QEvent* event) {
  QDialog::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) browser_->restyle();
}

}  // namespace mw::ui

#include "moc_manual_window.cpp"
