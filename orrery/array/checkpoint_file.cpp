// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/checkpoint_file.hpp>
#include <orrery/process/io.hpp>

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
#include <xxhash.h>
#include <nlohmann/json.hpp>

namespace orrery::detail {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t flush_at = 4 << 20;
constexpr int version = 2;

// Before each state.
struct record_head {
  std::uint64_t item = 0;
  std::uint64_t bytes = 0;
};

std::string header_of(const std::string& folder) { return folder + "/checkpoint.json"; }
std::string checksum_text(std::uint64_t sum) { return fmt::format("{:016x}", sum); }
// Of the header, before its own checksum is in it.
std::string checksum_of(const nlohmann::ordered_json& header) {
  const std::string text = header.dump();
  return checksum_text(XXH3_64bits(text.data(), text.size()));
}

}  // namespace

struct checkpoint_writer::file {
  io::descriptor out;
  std::string path;
  bytes pending;
  checkpoint_part part;
  XXH3_state_t* hash = XXH3_createState();

  file() {
    if (hash == nullptr) throw std::bad_alloc{};
    XXH3_64bits_reset(hash);
  }
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  ~file() { XXH3_freeState(hash); }
};

checkpoint_writer::checkpoint_writer(const std::string& folder, std::string name) : file_(std::make_unique<file>()) {
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
  if (file_->pending.size() >= flush_at) flush();
}

void checkpoint_writer::flush() {
  XXH3_64bits_update(file_->hash, file_->pending.data(), file_->pending.size());
  io::write_all(file_->out.get(), file_->pending, file_->part.bytes);
  file_->part.bytes += file_->pending.size();
  file_->pending.clear();
}

checkpoint_part checkpoint_writer::finish() {
  flush();
  io::fsync(file_->out.get());
  file_->out.close();
  file_->part.checksum = XXH3_64bits_digest(file_->hash);
  return file_->part;
}

checkpoint_reader::checkpoint_reader(const std::string& folder, const checkpoint_part& part)
    : path_(folder + "/" + part.file) {
  io::descriptor in(io::open(path_, O_RDONLY));
  all_.resize(part.bytes + 1);  // one more: to see that the file ends there
  const std::size_t got = io::read_all(in.get(), all_, 0);
  if (got != part.bytes)
    throw bad_message(errc::message_truncated,
                      fmt::format("{}: a part of a checkpoint, which has {} bytes{} instead of {}", path_, got,
                                  got > part.bytes ? " or more" : "", part.bytes));
  all_.resize(got);
  if (XXH3_64bits(all_.data(), all_.size()) != part.checksum)
    throw bad_message(errc::message_corrupt,
                      fmt::format("{}: a part of a checkpoint, which is not what was written (checksum)", path_));
}

bool checkpoint_reader::next(checkpoint_record& r) {
  if (at_ == all_.size()) return false;
  record_head head;
  if (all_.size() - at_ < sizeof head) throw bad_message(errc::message_truncated, path_);
  std::memcpy(&head, all_.data() + at_, sizeof head);
  at_ += sizeof head;
  if (head.bytes > all_.size() - at_) throw bad_message(errc::message_truncated, path_);
  r.item = static_cast<std::uint32_t>(head.item);
  const auto first = all_.begin() + static_cast<std::ptrdiff_t>(at_);
  r.data.assign(first, first + static_cast<std::ptrdiff_t>(head.bytes));
  at_ += head.bytes;
  return true;
}

void begin_checkpoint(const std::string& folder, const std::vector<checkpoint_item>& items) {
  std::set<std::pair<std::uint32_t, address>> all;
  for (const auto& i : items) {
    if (i.id != 0 && !all.emplace(i.id, address{}).second)
      throw usage_error(errc::bad_argument, fmt::format("checkpoint: the array {} is named twice", i.name));
    for (const address& a : i.processes)
      if (!all.emplace(0, a).second)
        throw usage_error(
            errc::bad_argument,
            fmt::format("checkpoint: the process {} is named twice, by itself or by its group", to_string(a)));
  }
  fs::create_directories(folder);
  if (fs::exists(header_of(folder)))
    throw usage_error(
        errc::bad_argument,
        fmt::format("checkpoint: there is one in {} already; remove it or choose another folder", folder));
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
  io::descriptor in(io::open(path, O_RDONLY));
  std::string text(fs::file_size(path), '\0');
  text.resize(io::read_all(in.get(), std::as_writable_bytes(std::span(text)), 0));
  checkpoint_header h;
  std::vector<std::string> found;
  try {
    auto j = nlohmann::ordered_json::parse(text);
    if (j.at("orrery") != "checkpoint" || j.at("version") != version)
      throw usage_error(errc::bad_argument, fmt::format("{} was written by another version of Orrery", path));
    const std::string sum = j.at("checksum");
    j.erase("checksum");
    if (checksum_of(j) != sum)
      throw bad_message(errc::message_corrupt, fmt::format("{}: it is not what was written (checksum)", path));
    for (const auto& i : j.at("items")) {
      checkpoint_item item{i.at("type"), i.at("name"), i.at("id"), {}};
      for (const auto& a : i.at("processes")) item.processes.push_back({a.at(0), a.at(1), a.at(2)});
      found.push_back(item.type);
      h.items.push_back(std::move(item));
    }
    for (const auto& p : j.at("parts")) {
      const std::string file = p.at("file");
      if (file.find('/') != std::string::npos)
        throw bad_message(errc::message_corrupt, fmt::format("{}: a part in another folder", path));
      const std::string part_sum = p.at("checksum");
      h.parts.push_back({file, p.at("bytes"), std::strtoull(part_sum.c_str(), nullptr, 16)});
    }
  } catch (const nlohmann::json::exception& e) {
    throw bad_message(errc::message_corrupt, fmt::format("{}: {}", path, e.what()));
  }
  if (found != types)
    throw usage_error(errc::bad_argument,
                      fmt::format("{} holds {}, not {}; restore what was written, in the same order", folder,
                                  fmt::join(found, ", "), fmt::join(types, ", ")));
  return h;
}

}  // namespace orrery::detail
