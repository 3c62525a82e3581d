// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/checkpoint_file.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <xxhash.h>
#include <nlohmann/json.hpp>

namespace orrery::detail {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t window_bytes = 4 << 20;  // of a file in memory
constexpr int version = 2;

// Before each state.
struct record_head {
  std::uint64_t item = 0;
  std::uint64_t bytes = 0;
};

std::string header_of(const std::string& folder) { return folder + "/checkpoint.json"; }
std::string checksum_text(std::uint64_t sum) { return fmt::format("{:016x}", sum); }
// The checksum of the header, before it is in the header.
std::string checksum_of(const nlohmann::ordered_json& header) {
  const std::string text = header.dump();
  return checksum_text(XXH3_64bits(text.data(), text.size()));
}

// The checksum of a file that goes by in pieces.
class checksum {
 public:
  checksum() : state_(XXH3_createState()) {
    if (state_ == nullptr) throw std::bad_alloc{};
    XXH3_64bits_reset(state_.get());
  }
  void add(std::span<const std::byte> piece) { XXH3_64bits_update(state_.get(), piece.data(), piece.size()); }
  [[nodiscard]] std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct free_state {
    void operator()(XXH3_state_t* s) const noexcept { XXH3_freeState(s); }
  };
  wire::unique_ptr<XXH3_state_t, free_state> state_;
};

[[noreturn]] void throw_damaged(const std::string& path, const std::string& how) {
  throw std::system_error(
      EBADMSG, std::generic_category(),
      fmt::format("{}, of a checkpoint, is damaged: {}; restore an earlier one, and see whether the drive is well",
                  path, how));
}

std::uint64_t size_of_file(const std::string& path) {
  std::error_code why;
  const fs::file_status status = fs::status(path, why);
  if (!fs::exists(status)) throw_damaged(path, "it is missing");
  if (!fs::is_regular_file(status)) throw_damaged(path, "it is no file, but a folder, pipe or device");
  return fs::file_size(path);
}

}  // namespace

struct checkpoint_writer::file {
  io::descriptor out;
  std::string path;
  bytes pending;
  checkpoint_part part;
  checksum sum;
};

checkpoint_writer::checkpoint_writer(const std::string& folder, std::string name) : file_(wire::make_unique<file>()) {
  file_->path = folder + "/" + name;
  file_->part.file = std::move(name);
  file_->out = io::descriptor(io::open(file_->path, O_WRONLY | O_CREAT | O_TRUNC));
}
checkpoint_writer::~checkpoint_writer() = default;

void checkpoint_writer::add(const checkpoint_record& r) {
  const record_head head{r.item, r.data.size()};
  const auto* p = reinterpret_cast<const std::byte*>(&head);
  file_->pending.insert(file_->pending.end(), p, p + sizeof head);
  file_->pending.insert(file_->pending.end(), r.data.begin(), r.data.end());
  if (file_->pending.size() >= window_bytes) flush();
}

void checkpoint_writer::flush() {
  file_->sum.add(file_->pending);
  io::write_all(file_->out.get(), file_->pending, file_->part.bytes);
  file_->part.bytes += file_->pending.size();
  file_->pending.clear();
}

checkpoint_part checkpoint_writer::finish() {
  flush();
  io::fsync(file_->out.get());
  file_->out.close();
  file_->part.checksum = file_->sum.value();
  return file_->part;
}

// The file from the start of what has not been taken yet.
struct checkpoint_reader::file {
  std::string path;
  io::descriptor in;
  std::uint64_t bytes;  // that it has
  std::uint64_t read = 0;  // of these, so far
  std::vector<std::byte> window{};
  std::size_t at = 0;  // in the window

  [[nodiscard]] std::uint64_t left() const noexcept { return bytes - read + window.size() - at; }
  void refill() {
    window.resize(std::min<std::uint64_t>(window_bytes, bytes - read));
    at = 0;
    const std::size_t got = io::read_all(in.get(), window, read);
    if (got != window.size())
      throw_damaged(path, fmt::format("it ends after {} bytes instead of {}", read + got, bytes));
    read += got;
  }
  void take(std::span<std::byte> into) {
    if (into.size() > left()) throw_damaged(path, "a state goes on behind its end");
    while (!into.empty()) {
      if (at == window.size()) refill();
      const std::size_t n = std::min(into.size(), window.size() - at);
      std::memcpy(into.data(), window.data() + at, n);
      at += n;
      into = into.subspan(n);
    }
  }
};

checkpoint_reader::checkpoint_reader(const std::string& folder, const checkpoint_part& part) {
  const std::string path = folder + "/" + part.file;
  const std::uint64_t size = size_of_file(path);
  file_.reset(new file{path, io::descriptor(path, O_RDONLY), part.bytes});
  file& f = *file_;
  if (size != f.bytes) throw_damaged(f.path, fmt::format("it has {} bytes instead of {}", size, f.bytes));
  checksum sum;
  while (f.read != f.bytes) {
    f.refill();
    sum.add(f.window);
  }
  if (sum.value() != part.checksum) throw_damaged(f.path, "it is not what was written (checksum)");
  f.read = 0;
  f.window.clear();
}
checkpoint_reader::~checkpoint_reader() = default;

bool checkpoint_reader::next(checkpoint_record& r) {
  if (file_->left() == 0) return false;
  record_head head;
  file_->take(std::as_writable_bytes(std::span(&head, 1)));
  if (head.bytes > file_->left()) throw_damaged(file_->path, "a state goes on behind its end");
  r.item = static_cast<std::uint32_t>(head.item);
  r.data.resize(head.bytes);
  file_->take(r.data);
  return true;
}

namespace {
// Before anything is written: the header could not be.
void require_text(const std::string& name) try {
  (void)nlohmann::json(name).dump();
} catch (const nlohmann::json::exception&) {
  throw usage_error(errc::bad_argument,
                    "checkpoint: the name of an array is no text in UTF-8; give it another one in array_options::name");
}
}  // namespace

io::descriptor begin_checkpoint(const std::string& folder, const std::vector<checkpoint_item>& items) {
  std::set<std::pair<std::uint32_t, address>> all;
  for (const auto& i : items) {
    require_text(i.name);
    if (i.id != 0 && !all.emplace(i.id, address{}).second)
      throw usage_error(errc::bad_argument, fmt::format("checkpoint: the array {} is named twice", i.name));
    for (const address& a : i.processes)
      if (!all.emplace(0, a).second)
        throw usage_error(
            errc::bad_argument,
            fmt::format("checkpoint: the process {} is named twice, by itself or by its group", to_string(a)));
  }
  fs::create_directories(folder);
  io::descriptor lock(folder, O_RDONLY | O_DIRECTORY);
  // Some file systems cannot lock folders: there the program has to see to it.
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw usage_error(errc::bad_argument,
                      fmt::format("checkpoint: another one is being written to {}; choose another folder", folder));
  if (fs::exists(header_of(folder)))
    throw usage_error(
        errc::bad_argument,
        fmt::format("checkpoint: there is one in {} already; remove it or choose another folder", folder));
  return lock;
}

void write_checkpoint_header(const std::string& folder, const checkpoint_header& h) {
  using json = nlohmann::ordered_json;
  json j{{"orrery", "checkpoint"}, {"version", version}, {"items", json::array()}, {"parts", json::array()}};
  for (const auto& i : h.items) {
    json processes = json::array();
    for (const address& a : i.processes) processes.push_back({a.pe, a.slot, a.generation});
    j["items"].push_back({{"type", i.type}, {"name", i.name}, {"id", i.id}, {"processes", std::move(processes)}});
  }
  for (const auto& p : h.parts)
    j["parts"].push_back({{"file", p.file}, {"bytes", p.bytes}, {"checksum", checksum_text(p.checksum)}});
  j["checksum"] = checksum_of(j);
  const std::string text = j.dump() + "\n";
  const std::string unfinished = header_of(folder) + ".new";
  io::descriptor out(io::open(unfinished, O_WRONLY | O_CREAT | O_TRUNC));
  io::write_all(out.get(), std::as_bytes(std::span(text)), 0);
  io::fsync(out.get());
  out.close();
  fs::rename(unfinished, header_of(folder));
  const io::descriptor entries(io::open(folder, O_RDONLY | O_DIRECTORY));
  io::fsync(entries.get());
}

checkpoint_header read_checkpoint_header(const std::string& folder, const std::vector<std::string>& types) {
  const std::string path = header_of(folder);
  if (!fs::exists(path))
    throw usage_error(errc::bad_argument,
                      fmt::format("{} holds no checkpoint, or one that was not finished: there is no {}; restore an "
                                  "earlier one",
                                  folder, path));
  constexpr std::uint64_t most = 1 << 30;
  const std::uint64_t size = size_of_file(path);
  if (size > most) throw_damaged(path, fmt::format("it has {} bytes, more than a header can have", size));
  io::descriptor in(io::open(path, O_RDONLY));
  std::string text(size, '\0');
  text.resize(io::read_all(in.get(), std::as_writable_bytes(std::span(text)), 0));
  checkpoint_header h;
  std::vector<std::string> found;
  try {
    auto j = nlohmann::ordered_json::parse(text);
    if (j.at("orrery") != "checkpoint") throw_damaged(path, "it is not the header of a checkpoint");
    if (const auto& v = j.at("version"); v != version)
      throw usage_error(
          errc::bad_argument,
          fmt::format(
              "{} was written by another version of Orrery: its format is {}, and this one reads {}; restore it with the "
              "program that wrote it",
              path, v.dump(), version));
    const std::string sum = j.at("checksum");
    j.erase("checksum");
    if (checksum_of(j) != sum) throw_damaged(path, "it is not what was written (checksum)");
    for (const auto& i : j.at("items")) {
      checkpoint_item item{i.at("type"), i.at("name"), i.at("id"), {}};
      for (const auto& a : i.at("processes")) item.processes.push_back({a.at(0), a.at(1), a.at(2)});
      found.push_back(item.type);
      h.items.push_back(std::move(item));
    }
    for (const auto& p : j.at("parts")) {
      const std::string file = p.at("file");
      if (file.find('/') != std::string::npos) throw_damaged(path, "it names a part in another folder");
      const std::string part_sum = p.at("checksum");
      h.parts.push_back({file, p.at("bytes"), std::strtoull(part_sum.c_str(), nullptr, 16)});
    }
  } catch (const nlohmann::json::exception& e) {
    throw_damaged(path, e.what());
  }
  if (found != types)
    throw usage_error(errc::bad_argument,
                      fmt::format("{} holds {}, not {}; restore what was written, in the same order", folder,
                                  fmt::join(found, ", "), fmt::join(types, ", ")));
  return h;
}

}  // namespace orrery::detail
