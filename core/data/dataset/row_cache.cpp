// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/row_cache.h"
#include "core/base/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <optional>
#include <thread>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/rng.h"
#include "core/base/sha256.h"
#include "core/data/dataset/data_file.h"

namespace mw::data {
namespace fs = std::filesystem;

// The state of a scan for other threads.
struct RowBuild {
  std::mutex mutex;
  std::condition_variable_any changed;
  fs::path part;                      // the file that is written
  std::vector<std::uint64_t> blocks;  // offsets of the records of complete blocks
  long done = 0, total = 0;
  bool has_ended = false;
};

// Registers this thread as the writer of an entry, or finds the thread that is.
class RowCache::Writer {
 public:
  Writer(RowCache& cache, fs::path key) : cache_(cache), key_(std::move(key)) {
    const std::lock_guard lock(cache.mutex_);
    auto& known = cache.builds_[key_];
    is_first_ = !known;
    if (is_first_) known = std::make_shared<RowBuild>();
    build_ = known;
  }
  ~Writer() {
    if (!is_first_) return;
    {
      const std::lock_guard lock(cache_.mutex_);
      cache_.builds_.erase(key_);
    }
    const std::lock_guard lock(build_->mutex);
    build_->has_ended = true;
    build_->changed.notify_all();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  RowBuild& build() const { return *build_; }
  bool is_first() const { return is_first_; }

 private:
  RowCache& cache_;
  fs::path key_;
  std::shared_ptr<RowBuild> build_;
  bool is_first_ = false;
};

namespace {

using namespace std::chrono_literals;

// Increase it whenever the same file, tokenizer and settings give other rows or tokens: a chat template, a rule of
// reading or encoding, or a fixed mistake of a tokenizer.
constexpr int kRowsVersion = 1;

constexpr const char *kEntry = ".rows", *kStamp = ".file";
constexpr std::int64_t kSettledNs = 100'000'000;  // a file that changed later may change again with the same times
constexpr size_t kKeyDigits = 32, kWriteBuffer = 1 << 20;
constexpr auto kPoll = 100ms;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::mutex process_mutex;
std::shared_ptr<RowCache> process_cache = std::make_shared<RowCache>();

struct Stamp {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = 0, modified_ns = 0, changed_ns = 0;
  bool operator==(const Stamp&) const = default;
};

std::optional<Stamp> stamp_of(const fs::path& file) {
  struct stat st {};
  if (::stat(file.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return std::nullopt;
  const auto ns = [](const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
  return Stamp{st.st_dev, st.st_ino, st.st_size, ns(st.st_mtim), ns(st.st_ctim)};
}

// The stamp of several files has the sum of their sizes, the latest times, and a hash in the place of the inode.
std::optional<Stamp> stamp_now(const DatasetOptions& options) {
  const std::vector<NumberedFile> files = data_files(options);
  std::optional<Stamp> all = stamp_of(files.front().path);
  for (size_t i = 1; i < files.size() && all; ++i) {
    const std::optional<Stamp> one = stamp_of(files[i].path);
    if (!one) return std::nullopt;
    for (const std::uint64_t part :
         {one->device, one->inode, static_cast<std::uint64_t>(one->size), static_cast<std::uint64_t>(one->modified_ns),
          static_cast<std::uint64_t>(one->changed_ns), std::uint64_t{files[i].number.held_out}})
      all->inode = mix64(all->inode ^ part);
    all->size += one->size;
    all->modified_ns = std::max(all->modified_ns, one->modified_ns);
    all->changed_ns = std::max(all->changed_ns, one->changed_ns);
  }
  return all;
}

bool is_settled(const Stamp& stamp) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return std::max(stamp.modified_ns, stamp.changed_ns) + kSettledNs < ns;
}

std::string key_of(const std::string& text) {
  return hex(Sha256().add(text).finish()).substr(0, kKeyDigits);
}

// The extensions and splits of the files and where each ends in the content of all.
Json files_json(const DatasetOptions& options) {
  Json files = Json::array();
  std::error_code missing;
  for (const NumberedFile& file : data_files(options))
    files.push_back({data_extension(file.path), file.number.held_out, fs::file_size(file.path, missing)});
  return files;
}

// All inputs of the tokens but the content of the files.
Json settings_json(const DatasetOptions& o, const Tokenizer& tokenizer) {
  const bool running = is_running_text(o);
  return {{"version", kRowsVersion},       {"tokenizer", tokenizer.fingerprint()},
          {"format", to_string(o.format)}, {"columns", o.columns},
          {"chat", o.chat.identity()},     {"loss", to_string(o.loss)},
          {"files", files_json(o)},        {"max_len", running ? o.max_len : 0}};
}

// One request to the cache, with the names that follow from it.
struct Request {
  const DatasetOptions& options;
  const Tokenizer& tokenizer;
  const std::stop_token& stop;
  const CountProgress& progress;
  const DataRowSink& sink;
  RowCacheOptions cache;
  Stamp stamp{};
  bool is_settled = false;  // before the file is read
  Json settings{};
  std::string settings_key{};
  std::int64_t given = 0;  // rows that the sink has seen

  void tick(long done, long total) const {
    if (stop.stop_requested()) throw cancelled("reading " + options.path.string());
    if (progress) progress(done, total);
  }
  void give(std::int64_t index, const DataRow& row, const Problem* problem) {
    if (index < given) return;  // seen in an earlier attempt
    ++given;
    if (sink) sink(row, problem);
  }
  std::string entry_name(const std::string& content) const { return content.substr(0, kKeyDigits) + entry_suffix(); }
  std::string entry_suffix() const { return "-" + settings_key + "-" + std::to_string(stamp.size) + kEntry; }
  fs::path stamp_file() const {
    const Json of{stamp.device, stamp.inode, stamp.size, stamp.modified_ns, stamp.changed_ns, settings_key};
    return cache.folder / (key_of(of.dump()) + kStamp);
  }
  Json properties(const std::string& content) const {
    return {{"settings", settings}, {"sha256", content}, {"bytes", stamp.size}};
  }
};

// Hands over the rows that `sink` has not seen.
void give_all(const TokenRows& rows, Request& q) {
  const std::vector<Problem> problems = rows.problems(q.options);
  size_t bad = 0;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    if (i % 65536 == 0) q.tick(static_cast<long>(i), static_cast<long>(rows.size()));
    const DataRow row = rows.row(i, q.options);
    const bool known = row.state == RowState::bad && bad < problems.size();
    q.give(i, row, known ? &problems[bad++] : nullptr);
  }
  q.tick(static_cast<long>(rows.size()), static_cast<long>(rows.size()));
}

// Null if the entry does not exist. One that is damaged or belongs to other data is removed.
std::shared_ptr<const TokenRows> open_entry(const fs::path& file, const Request& q) {
  if (!is_file(file)) return nullptr;
  try {
    auto rows = std::make_shared<const TokenRows>(file);
    const Json& p = rows->properties();
    const Json* content = find_member(p, "sha256");
    if (content && content->is_string() && p == q.properties(content->get<std::string>()) &&
        file.filename() == q.entry_name(content->get<std::string>())) {
      std::error_code ignored;
      fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);  // for the least recently used
      return rows;
    }
  } catch (const Error&) {
  }
  file_system().unlink(file.c_str());
  return nullptr;
}

std::vector<fs::path> files_in(const fs::path& folder, const std::string& suffix) {
  std::vector<fs::path> found;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec))
    if (at->path().filename().string().ends_with(suffix)) found.push_back(at->path());
  return found;
}

void keep_stamp(const Request& q, const std::string& entry) try {
  if (q.is_settled) write_file_atomically(q.stamp_file(), entry);
} catch (const Error&) {  // the next call hashes the file
}

std::string content_hash(const Request& q) {
  Sha256 sum;
  std::vector<char> chunk(kWriteBuffer);
  long done = 0;
  for (const NumberedFile& part : data_files(q.options)) {
    const Descriptor file(open_input(part.path));
    for (;;) {
      q.tick(done, static_cast<long>(q.stamp.size));
      const ssize_t n = ::read(file.get(), chunk.data(), chunk.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw system_error("cannot read", part.path.string(), errno);
      if (n == 0) break;
      sum.add({chunk.data(), static_cast<size_t>(n)});
      done += n;
    }
  }
  return hex(sum.finish());
}

// Looks the entry up by the stamp of the file, then by its content if an entry of the same size exists.
std::shared_ptr<const TokenRows> find_entry(const Request& q) {
  try {
    const std::string name = read_text(q.stamp_file(), 1024);
    if (name.ends_with(q.entry_suffix()) && name.find('/') == std::string::npos)
      if (auto rows = open_entry(q.cache.folder / name, q)) return rows;
  } catch (const Error&) {  // no stamp
  }
  if (files_in(q.cache.folder, q.entry_suffix()).empty()) return nullptr;
  const std::string name = q.entry_name(content_hash(q));
  auto rows = open_entry(q.cache.folder / name, q);
  if (rows) keep_stamp(q, name);
  return rows;
}

// Reads the records of a complete block, and gives its rows. False if the file cannot be read.
bool give_block(int part, std::uint64_t block, std::int64_t first, Request& q) {
  std::vector<TokenRecord> records(TokenRowsWriter::kBlockRows);
  const size_t bytes = records.size() * sizeof(TokenRecord);
  if (::pread(part, records.data(), bytes, static_cast<off_t>(block)) != static_cast<ssize_t>(bytes)) return false;
  for (const TokenRecord& r : records) {
    const auto within = [&](std::int32_t tokens) -> std::int64_t {
      if (const auto known = loss_within(r, tokens)) return *known;
      std::vector<std::byte> bits(loss_bytes(r));
      const std::uint64_t at = r.payload + id_bytes(r, q.tokenizer.size());
      if (::pread(part, bits.data(), bits.size(), static_cast<off_t>(at)) != std::ssize(bits))
        throw system_error("cannot read", q.cache.folder.string(), errno);
      return loss_within(r, bits, tokens);
    };
    q.give(first++, data_row(r, q.options, within), nullptr);
  }
  return true;
}

// Gives the rows of complete blocks until the writer ends.
void follow(RowBuild& build, Request& q) {
  std::unique_lock lock(build.mutex);
  const Descriptor part(build.part.empty() ? -1 : ::open(build.part.c_str(), O_RDONLY | O_CLOEXEC));
  bool readable = part.get() >= 0;
  for (size_t seen = 0;;) {
    build.changed.wait_for(lock, q.stop, kPoll, [&] { return build.has_ended || build.blocks.size() > seen; });
    const std::vector<std::uint64_t> blocks(build.blocks.begin() + static_cast<std::ptrdiff_t>(seen),
                                            build.blocks.end());
    const bool ended = build.has_ended;
    const long done = build.done, total = build.total;
    lock.unlock();
    q.tick(done, total);
    for (const std::uint64_t block : blocks) {
      const auto first = static_cast<std::int64_t>(seen++) * TokenRowsWriter::kBlockRows;
      readable = readable && give_block(part.get(), block, first, q);
    }
    if (ended) return;
    lock.lock();
  }
}

// One writer of an entry among all processes: a lock on one byte of the cache's lock file, which ends with the process.
class EntryLock {
 public:
  EntryLock(const Request& q)
      : file_(file_system().open((q.cache.folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(std::stoul(key_of(q.stamp_file().string()).substr(0, 7), nullptr, 16));
    range.l_len = 1;
    while (file_.get() >= 0 && ::fcntl(file_.get(), F_OFD_SETLK, &range) != 0 && (errno == EAGAIN || errno == EACCES)) {
      q.tick(0, static_cast<long>(q.stamp.size));
      std::this_thread::sleep_for(kPoll);
    }
  }

 private:
  Descriptor file_;
};

struct CannotWrite {};  // the cache; the data can be read

// Writes the file of an entry in large pieces.
class EntryFile {
 public:
  explicit EntryFile(const fs::path& part) try : file_(part, OutputFile::Create::replace) {
    lock_part(file_.descriptor());
    buffer_.reserve(kWriteBuffer);
  } catch (const Error&) {
    throw CannotWrite();
  }
  void append(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > kWriteBuffer) flush();
    if (bytes.size() > kWriteBuffer) return write(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  void flush() {
    write(buffer_);
    buffer_.clear();
  }

 private:
  void write(std::span<const std::byte> bytes) try { file_.write(bytes); } catch (const Error&) {
    throw CannotWrite();
  }

  OutputFile file_;
  std::vector<std::byte> buffer_;
};

// Removes the file unless it was renamed.
struct RemovedPart {
  fs::path path;
  ~RemovedPart() {
    if (!path.empty()) file_system().unlink(path.c_str());
  }
};

// Deletes the least recently used entries beyond the limit, stamps without an entry and files of killed processes.
void clean(const RowCacheOptions& cache) {
  struct Entry {
    fs::path path;
    std::uint64_t bytes;
    fs::file_time_type used;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code ec;
  for (const fs::path& path : files_in(cache.folder, kEntry)) {
    const Entry entry{path, fs::file_size(path, ec), fs::last_write_time(path, ec)};
    if (ec) continue;  // another process has deleted it
    total += entry.bytes;
    entries.push_back(entry);
  }
  const fs::space_info space = fs::space(cache.folder, ec);
  const std::uint64_t most = ec ? cache.most_bytes : std::min(cache.most_bytes, (space.available + total) / 10);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= most) break;
    file_system().unlink(entry.path.c_str());
    total -= entry.bytes;
  }
  for (const fs::path& stamp : files_in(cache.folder, kStamp)) try {
      if (!is_file(cache.folder / read_text(stamp, 1024))) file_system().unlink(stamp.c_str());
    } catch (const Error&) {
    }
  remove_stale_parts_in(cache.folder);
}

// Scans the file into `append`; returns the hash of its content.
std::string scan_into(TokenRowsWriter& writer, Request& q, const CountProgress& progress,
                      const std::function<void()>& added) {
  Sha256 sum;
  std::int64_t index = 0;
  const RowSink sink = [&](const ScannedRow& row) {
    writer.add(row);
    if (added) added();
    q.give(index++, data_row(row), row.state == RowState::bad ? &row.problem : nullptr);
  };
  scan_rows(q.options, q.tokenizer, q.stop, progress, sink, &sum);
  const std::string content = hex(sum.finish());
  writer.finish(q.properties(content));
  return content;
}

std::shared_ptr<const TokenRows> read_into_memory(Request& q) {
  std::vector<std::byte> content;
  TokenRowsWriter writer(
      [&](std::span<const std::byte> bytes) { content.insert(content.end(), bytes.begin(), bytes.end()); },
      q.tokenizer.size());
  scan_into(writer, q, q.progress, {});
  return std::make_shared<const TokenRows>(std::move(content));
}

std::shared_ptr<const TokenRows> build_entry(RowBuild& build, Request& q) {
  RemovedPart part{part_path(q.stamp_file().replace_extension(kEntry))};
  EntryFile file(part.path);
  TokenRowsWriter writer([&](std::span<const std::byte> bytes) { file.append(bytes); }, q.tokenizer.size());
  {
    const std::lock_guard lock(build.mutex);
    build.part = part.path;
  }
  const auto progress = [&](long done, long total) {
    {
      const std::lock_guard lock(build.mutex);
      build.done = done;
      build.total = total;
    }
    q.tick(done, total);
  };
  const auto added = [&] {
    if (writer.blocks().size() == build.blocks.size()) return;  // only this thread changes them
    file.flush();
    const std::lock_guard lock(build.mutex);
    build.blocks = writer.blocks();
    build.changed.notify_all();
  };
  const std::string content = scan_into(writer, q, progress, added);
  file.flush();
  if (stamp_now(q.options) != q.stamp) return std::make_shared<const TokenRows>(part.path);  // changed meanwhile
  const std::string name = q.entry_name(content);
  // Not synced: after a power failure its checksums tell whether it is complete.
  if (file_system().rename(part.path.c_str(), (q.cache.folder / name).c_str()) != 0) throw CannotWrite();
  part.path.clear();
  keep_stamp(q, name);
  auto rows = std::make_shared<const TokenRows>(q.cache.folder / name);
  clean(q.cache);
  return rows;
}

}  // namespace

void set_row_cache(RowCacheOptions options) {
  auto cache = std::make_shared<RowCache>(std::move(options));
  const std::lock_guard lock(process_mutex);
  process_cache = std::move(cache);
}

std::shared_ptr<RowCache> row_cache() {
  const std::lock_guard lock(process_mutex);
  return process_cache;
}

std::shared_ptr<const TokenRows> RowCache::open(const DatasetOptions& options, const Tokenizer& tokenizer,
                                                const std::stop_token& stop, const CountProgress& progress,
                                                const DataRowSink& sink) {
  Request q{options, tokenizer, stop, progress, sink, options_};
  const std::optional<Stamp> stamp = stamp_now(options);
  if (stamp) {
    q.stamp = *stamp;
    q.is_settled = is_settled(*stamp);
  }
  const bool cached = stamp && !q.cache.folder.empty() && !tokenizer.fingerprint().empty() &&
                      static_cast<std::uint64_t>(stamp->size) >= q.cache.least_bytes;
  if (!cached) return read_into_memory(q);
  q.settings = settings_json(options, tokenizer);
  q.settings_key = key_of(q.settings.dump());
  try {
    make_folders(q.cache.folder);
  } catch (const Error&) {
    return read_into_memory(q);
  }
  for (;;) {
    const Writer writer(*this, q.stamp_file());
    if (!writer.is_first()) {
      follow(writer.build(), q);
      if (auto rows = find_entry(q)) {
        give_all(*rows, q);
        return rows;
      }
      continue;  // it did not end with an entry
    }
    const EntryLock lock(q);
    if (auto rows = find_entry(q)) {
      give_all(*rows, q);
      return rows;
    }
    try {
      return build_entry(writer.build(), q);
    } catch (const CannotWrite&) {
      return read_into_memory(q);
    }
  }
}

RowCacheUse row_cache_use(const fs::path& folder) {
  RowCacheUse use;
  std::error_code ec;
  for (const fs::path& path : files_in(folder, kEntry)) {
    const auto bytes = fs::file_size(path, ec);
    if (ec) continue;
    ++use.entries;
    use.bytes += static_cast<std::int64_t>(bytes);
  }
  return use;
}

}  // namespace mw::data
