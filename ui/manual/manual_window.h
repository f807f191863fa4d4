// SPDX-License-Identifier: GPL-3.0-or-later
// Shows the manual: contents and search results on the left, the chapter on the right, back and forward. Not modal.
// GUI thread.
#pragma once
#include <QDialog>
#include <QString>
#include <QTextBrowser>
#include <filesystem>
#include <vector>

class QLabel;
class QLineEdit;
class QPushButton;
class QTreeWidget;
class QTreeWidgetItem;

namespace mw::ui {

// The chapters of the manual as text: their headings, and a search over all of them. Plain values; any thread.
struct ManualSection {
  QString heading, anchor;  // anchor as GitHub makes it; that of the chapter's title is empty
  int level = 1;            // 1: the chapter itself
  QString text;             // Markdown below the heading, up to the next one
};

struct ManualChapter {
  QString file;  // "03-training.md"
  QString title;
  std::vector<ManualSection> sections;
};

struct ManualHit {
  QString file, anchor, chapter, heading;
  QString excerpt;  // one line around the first match
  bool in_heading = false;
};

class ManualBook {
 public:
  // Reads the chapters NN-name.md of the folder, in their order. A chapter that cannot be read is left out.
  explicit ManualBook(const std::filesystem::path& folder);
  const std::vector<ManualChapter>& chapters() const { return chapters_; }
  const ManualChapter* find(const QString& file) const;
  // Sections that contain every word of the query, whatever their case: matches in headings first.
  std::vector<ManualHit> search(const QString& query) const;

 private:
  std::vector<ManualChapter> chapters_;
};

QString manual_anchor(const QString& heading);  // "Your own hardware" becomes "your-own-hardware"

// Opens chapters and their headings as links name them: "03-training.md#stop-and-resume".
class ManualBrowser : public QTextBrowser {
  Q_OBJECT
 public:
  ManualBrowser(const std::filesystem::path& folder, QWidget* parent);
  void open(const QString& file, const QString& anchor = {});
  QString file() const { return source().fileName(); }
  void restyle();  // for another theme

 protected:
  QVariant loadResource(int type, const QUrl& name) override;
  void doSetSource(const QUrl& name, QTextDocument::ResourceType type) override;

 private:
  void scroll_to_heading(const QString& anchor);
  QString folder_;
};

class ManualWindow : public QDialog {
  Q_OBJECT
 public:
  ManualWindow(const std::filesystem::path& folder, QWidget* parent);
  void open_chapter(const QString& file, const QString& anchor = {});  // shows and raises the window
  QString chapter() const { return browser_->file(); }
  const ManualBook& book() const { return book_; }
  ManualBrowser& browser() { return *browser_; }
  QLineEdit& search_field() { return *search_; }
  QTreeWidget& contents() { return *contents_; }
  QTreeWidget& results() { return *results_; }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void build();
  QTreeWidget* make_tree(const QString& name);
  void lay_out();
  void connect_controls();
  void fill_contents();
  void show_results();
  void follow(const QTreeWidgetItem* item);
  void mark_chapter(const QString& file);
  ManualBook book_;
  ManualBrowser* browser_;
  QLineEdit* search_;
  QLabel* found_;
  QTreeWidget *contents_, *results_;
  QPushButton *back_, *forward_;
};

}  // namespace mw::ui
