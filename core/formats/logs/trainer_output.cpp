// SPDX-License-Identifier: Apache-2.0
// Terminal output of trainers that build on transformers (axolotl, Unsloth, TRL): dictionaries of Python such as
// {'loss': '2.007', 'grad_norm': 2.27, 'epoch': 0.01} (texts since transformers 5), progress bars, the banner of
// Unsloth, and the table that notebooks show.
#include <cmath>

#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/formats/logs/log_readers.h"

namespace mw::formats {
namespace {

using Values = std::vector<std::pair<std::string, double>>;

// The part up to the next '\r' or '\n', which is removed; progress bars rewrite their line.
std::string_view take_segment(std::string_view& text) {
  const std::string_view segment = text.substr(0, text.find_first_of("\r\n"));
  text.remove_prefix(std::min(text.size(), segment.size() + 1));
  return segment;
}

std::optional<double> python_number(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return parse_number<double>(text);
}

// {'key': value, ...} of numbers; other values are left out. Empty if the text has another form or no known key.
Values values_of(std::string_view text) {
  if (!text.starts_with("{'") || !text.ends_with('}')) return {};
  Values values;
  bool known = false;
  for (std::string_view left = text.substr(1, text.size() - 2); !left.empty();) {
    left = trimmed(left);
    if (!left.starts_with('\'')) return {};
    const size_t quote = left.find('\'', 1);
    if (quote == std::string_view::npos || left.substr(quote + 1, 1) != ":") return {};
    const std::string key(left.substr(1, quote - 1));
    left.remove_prefix(quote + 2);
    const size_t next = std::min(left.find(", '"), left.size());
    if (const auto number = python_number(trimmed(left.substr(0, next)))) values.emplace_back(key, *number);
    known = known || key == "loss" || key == "eval_loss" || key == "train_runtime";
    left.remove_prefix(std::min(left.size(), next + 1));
  }
  return known ? values : Values();
}

// The dictionary at the end of a segment, behind a prefix such as "[ 230.7s] " of a program that adds one.
Values values_in(std::string_view segment) {
  segment = trimmed(segment);
  const size_t brace = segment.find("{'");
  if (brace == std::string_view::npos || (brace > 0 && segment[brace - 1] != ' ' && segment[brace - 1] != ']'))
    return {};
  return segment.front() == '{' && brace > 0 ? Values() : values_of(segment.substr(brace));
}

struct Progress {
  long step = 0, total = 0;
};

// "  2%|██   | 3/136 [00:44<31:10, 14.07s/it]"; bars of other work have a title: "Map: 100%|".
std::optional<Progress> progress_in(std::string_view segment) {
  const size_t percent = segment.find_first_not_of(" 0123456789");
  if (percent == std::string_view::npos || segment.substr(percent, 2) != "%|") return std::nullopt;
  const size_t bracket = segment.find(" [", percent), bar = segment.rfind("| ", bracket);
  if (bracket == std::string_view::npos || bar == std::string_view::npos || bar < percent) return std::nullopt;
  const std::string_view counts = segment.substr(bar + 2, bracket - bar - 2);
  const size_t slash = counts.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto step = parse_number<long>(counts.substr(0, slash)), total = parse_number<long>(counts.substr(slash + 1));
  if (!step || !total || *step < 0 || *total < *step || *total > kMostStep) return std::nullopt;
  return Progress{*step, *total};
}

// The number behind a name, "Total steps = 1,456"; thousands are separated by commas.
std::optional<double> banner_number(std::string_view line, std::string_view name) {
  const size_t at = line.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  std::string digits;
  for (const char c : line.substr(at + name.size())) {
    if (c >= '0' && c <= '9')
      digits += c;
    else if (c != ',')
      break;
  }
  return parse_number<double>(digits);
}

// Reads the output from the beginning; `log` holds the result.
class TrainerOutput {
 public:
  explicit TrainerOutput(RunLog& log) : log_(log) {}
  void take(std::string_view segment) {
    note_tool(segment);
    if (const auto progress = progress_in(segment)) progress_ = *progress;
    if (const Values values = values_in(segment); !values.empty()) return add(values);
    if (take_table_row(segment)) return;
    take_banner(segment);
  }
  void finish() {
    if (numbered_ > 0)
      log_.notes.push_back("the output has no step numbers for " + counted(numbered_, "entry") +
                           "; they are numbered from 1");
  }

 private:
  void note_tool(std::string_view segment) {
    if (log_.tool == "transformers" && segment.find("[axolotl.") != std::string_view::npos) log_.tool = "axolotl";
    if (log_.tool == "transformers" && segment.find("Unsloth") != std::string_view::npos) log_.tool = "Unsloth";
  }

  // The banner has the number of epochs and steps; a bar counts steps of training if its total is that of the banner,
  // or if no banner was printed.
  long step_of(const Values& values) {
    double epoch = -1;
    for (const auto& [key, value] : values)
      if (key == "epoch") epoch = value;
    if (epochs_ > 0 && log_.steps_total > 0 && epoch >= 0)
      return std::lround(std::min(epoch / epochs_, 1.0) * static_cast<double>(log_.steps_total));
    if (progress_.step > last_step_ && progress_.step > 0) return progress_.step;
    ++numbered_;
    return last_step_ + 1;
  }

  void add(const Values& values) {
    bool training = false, summary = false;
    for (const auto& [key, value] : values) {
      training = training || key == "loss";
      summary = summary || key == "train_runtime";
      if (key == "train_runtime") log_.seconds = value, log_.finished = true;
    }
    const long step = training ? step_of(values) : last_step_;
    last_step_ = std::max(last_step_, step);
    if (training && log_.steps_total < progress_.total && epochs_ == 0) log_.steps_total = progress_.total;
    for (const auto& [key, value] : values)
      if (key != "train_runtime") log_.scalars.push_back({output_name(key), step, scaled(key, value), 0});
    if (summary) progress_ = {};
  }

  static bool in_gib(std::string_view key) {  // axolotl's names of memory
    const std::string lower = lower_case(key);
    return lower.starts_with("memory/") && lower.ends_with("(gib)");
  }
  static double scaled(std::string_view key, double value) { return in_gib(key) ? value * 1024 * 1024 * 1024 : value; }
  static std::string output_name(const std::string& key) {
    if (in_gib(key)) return std::string(trimmed(std::string_view(key).substr(0, key.find('(')))) + "_bytes";
    return usual_name(key);
  }

  // Notebooks: "Step\tTraining Loss\tValidation Loss", then rows of numbers.
  bool take_table_row(std::string_view segment) {
    std::vector<std::string_view> cells;
    for (std::string_view left = segment; cells.size() < 64;) {
      const size_t tab = std::min(left.find('\t'), left.size());
      cells.push_back(trimmed(left.substr(0, tab)));
      if (tab == left.size()) break;
      left.remove_prefix(tab + 1);
    }
    if (cells.size() >= 2 && cells[0] == "Step" && cells[1] == "Training Loss") {
      columns_.assign(cells.begin(), cells.end());
      return true;
    }
    const auto step = columns_.empty() || cells.size() != columns_.size() ? std::nullopt : parse_number<long>(cells[0]);
    if (!step || *step < 0 || *step > kMostStep) return columns_.clear(), false;
    for (size_t i = 1; i < cells.size(); ++i)
      if (const auto value = parse_number<double>(cells[i])) log_.scalars.push_back({column_name(i), *step, *value, 0});
    last_step_ = std::max(last_step_, *step);
    return true;
  }
  std::string column_name(size_t column) const {
    const std::string& title = columns_[column];
    return title == "Training Loss" ? "train/loss" : title == "Validation Loss" ? "eval/loss" : usual_name(title);
  }

  void take_banner(std::string_view line) {
    if (const auto steps = banner_number(line, "Total steps = "))
      log_.steps_total = static_cast<long>(std::min(*steps, static_cast<double>(kMostStep)));
    if (const auto epochs = banner_number(line, "Num Epochs = ")) epochs_ = *epochs;
    for (const auto& [name, fact] : {std::pair("Num examples = ", "examples"),
                                     {"Batch size per device = ", "batch_per_device"},
                                     {"Gradient accumulation steps = ", "gradient_accumulation_steps"},
                                     {"Data Parallel GPUs = ", "data_parallel_gpus"},
                                     {"Trainable parameters = ", "trainable_parameters"}})
      if (const auto number = banner_number(line, name)) log_.facts[fact] = *number;
  }

  RunLog& log_;
  Progress progress_;
  std::vector<std::string> columns_;
  double epochs_ = 0;
  long last_step_ = 0, numbered_ = 0;
};

}  // namespace

bool contains_trainer_output(std::string_view beginning) {
  if (beginning.find('\0') != std::string_view::npos) return false;  // binary
  for (std::string_view left = beginning; !left.empty();) {
    const std::string_view segment = take_segment(left);
    if (!values_in(segment).empty() || segment.starts_with("Step\tTraining Loss")) return true;
  }
  return false;
}

RunLog read_trainer_output(const std::filesystem::path& file) {
  const std::string text = read_text(file, kMostLog);
  RunLog log;
  log.name = file.stem().string();
  log.tool = "transformers";
  TrainerOutput output(log);
  for (std::string_view left = text; !left.empty();) output.take(take_segment(left));
  output.finish();
  return log;
}

}  // namespace mw::formats
