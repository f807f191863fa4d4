// SPDX-License-Identifier: Apache-2.0
#include "core/present/html.h"

#include "core/base/json.h"

namespace mw::present {
namespace {

// Colours as in ui/theme: the palette of Okabe and Ito, with yellow and black replaced.
constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--page:#f6f7f9;--panel:#fff;--ink:#1b1e23;--muted:#5a626c;--line:#d6dae0;--mark:#fff1d6;
--bad:#b3261e;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#56b4e9;--c5:#8a6d00;--c6:#7a4fb5;--c7:#5a626c}
@media (prefers-color-scheme:dark){:root{--page:#15181c;--panel:#1d2127;--ink:#e6e9ed;--muted:#a0a8b2;--line:#343b44;
--mark:#4a3a12;--bad:#ff8a80;--c0:#4fb3ef;--c1:#ff8c42;--c2:#35c99b;--c3:#e6a3c7;--c4:#8fd0f5;--c5:#d9b640;--c6:#b794e6;
--c7:#a0a8b2}}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1100px;margin:0 auto;padding:24px}
section{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:4px 20px 16px;margin:16px 0}
h1{margin:8px 0}h2{font-size:1.15em}h3{font-size:1em;margin-bottom:4px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto}
th,td{border-bottom:1px solid var(--line);padding:4px 10px;text-align:right;vertical-align:top}
th:first-child{text-align:left;font-weight:normal}
thead th{color:var(--muted);font-weight:600}
td{overflow-wrap:anywhere}
.differs{background:var(--mark)}.bad{color:var(--bad);font-weight:600}
small,.note{color:var(--muted)}
.badge{border:1px solid var(--line);border-radius:10px;padding:1px 9px;font-size:.85em;color:var(--muted)}
figure{margin:12px 0}figcaption{font-weight:600}
svg{width:100%;height:auto;max-width:760px;font:12px system-ui,sans-serif}
svg text{fill:var(--muted)}svg .grid{stroke:var(--line)}
svg .line{fill:none;stroke-width:1.8}svg .predicted{stroke-dasharray:6 4}svg .imported{stroke-dasharray:2 3}
svg .c0{stroke:var(--c0)}svg .c1{stroke:var(--c1)}svg .c2{stroke:var(--c2)}svg .c3{stroke:var(--c3)}
svg .c4{stroke:var(--c4)}svg .c5{stroke:var(--c5)}svg .c6{stroke:var(--c6)}svg .c7{stroke:var(--c7)}
svg circle{fill:var(--panel)}
@media print{body{background:#fff}section{break-inside:avoid}}
)";

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
      out += "\uFFFD";
    else
      out += c;
  }
  return out;
}

std::string html_heading(int level, std::string_view text) {
  const std::string tag = "h" + std::to_string(level);
  return "<" + tag + ">" + escape_html(text) + "</" + tag + ">\n";
}

std::string html_paragraph(std::string_view text) {
  return "<p>" + escape_html(text) + "</p>\n";
}

std::string html_list(const std::vector<std::string>& items) {
  if (items.empty()) return {};
  std::string out = "<ul>\n";
  for (const std::string& item : items) out += "<li>" + escape_html(item) + "</li>\n";
  return out + "</ul>\n";
}

std::string html_badge(std::string_view text) {
  return "<span class=\"badge\">" + escape_html(text) + "</span>";
}

std::string html_details(std::string_view summary, std::string_view html) {
  return "<details><summary>" + escape_html(summary) + "</summary>\n" + std::string(html) + "</details>\n";
}

namespace {

std::string html_cell(const Cell& cell, bool is_heading) {
  const char* const style = cell.mark == Mark::differs ? " class=\"differs\""
                            : cell.mark == Mark::bad   ? " class=\"bad\""
                                                       : "";
  std::string out = (is_heading ? "<th scope=\"row\"" : "<td") + std::string(style) + ">" + escape_html(cell.text);
  for (const std::string& small : {cell.change ? change_text(*cell.change) : std::string(), cell.note})
    if (!small.empty()) out += "<br><small>" + escape_html(small) + "</small>";
  return out + (is_heading ? "</th>" : "</td>");
}

}  // namespace

std::string html_table(const Table& table) {
  if (table.rows.empty()) return {};
  std::string out = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const Column& column : table.columns) out += "<th scope=\"col\">" + escape_html(column.title) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const Row& row : table.rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.cells.size(); ++i) out += html_cell(row.cells[i], i == 0);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string html_document(std::string_view title, std::string_view body) {
  // The policy keeps a browser from loading or running anything, should a text get past the escaping.
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
         "<title>" +
         escape_html(title) + "</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n<main>\n" +
         std::string(body) + "</main>\n</body>\n</html>\n";
}

}  // namespace mw::present
