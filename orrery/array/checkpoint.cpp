// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/checkpoint.hpp>
#include <orrery/process/io.hpp>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <xxhash.h>
#include <nlohmann/json.hpp>

namespace orrery::detail {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t flush_at = 4 << 20;
constexpr int version = 1;

std::string header_of(const std::string& folder) { return folder + "/array.json"; }

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

void checkpoint_writer::add(const bytes& element) {
  const std::uint64_t length = element.size();
  const auto* p = reinterpret_cast<const std::byte*>(&length);
  file_->pending.insert(file_->pending.end(), p, p + sizeof length);
  file_->pending.insert(file_->pending.end(), element.begin(), element.end());
  ++file_->part.elements;
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

bytes read_checkpoint_part(const std::string& folder, const checkpoint_part& part) {
  const std::string path = folder + "/" + part.file;
  io::descriptor in(io::open(path, O_RDONLY));
  bytes all(part.bytes + 1);  // one more: to see that the file ends there
  const std::size_t got = io::read_all(in.get(), all, 0);
  if (got != part.bytes)
    throw bad_message(errc::message_truncated,
                      fmt::format("{}: a part of a checkpoint, which has {} bytes{} instead of {}", path, got,
                                  got > part.bytes ? " or more" : "", part.bytes));
  all.resize(got);
  if (XXH3_64bits(all.data(), all.size()) != part.checksum)
    throw bad_message(errc::message_corrupt,
                      fmt::format("{}: a part of a checkpoint, which is not what was written (checksum)", path));
  return all;
}

void begin_checkpoint(const std::string& folder) {
  fs::create_directories(folder);
  if (fs::exists(header_of(folder)))
    throw usage_error(
        errc::bad_argument,
        fmt::format("checkpoint: there is one in {} already; remove it or choose another folder", folder));
}

void write_checkpoint_header(const std::string& folder, const checkpoint_header& h) {
  nlohmann::ordered_json j{{"orrery", "array"},      {"version", version},
                           {"name", h.name},         {"class", h.element_class},
                           {"index", h.index_class}, {"parts", nlohmann::ordered_json::array()}};
  for (const auto& p : h.parts)
    j["parts"].push_back({{"file", p.file},
                          {"elements", p.elements},
                          {"bytes", p.bytes},
                          {"checksum", fmt::format("{:016x}", p.checksum)}});
  const std::string text = j.dump(1) + "\n";
  const std::string unfinished = header_of(folder) + ".new";
  io::descriptor out(io::open(unfinished, O_WRONLY | O_CREAT | O_TRUNC));
  io::write_all(out.get(), std::as_bytes(std::span(text)), 0);
  io::fsync(out.get());
  out.close();
  fs::rename(unfinished, header_of(folder));
  const io::descriptor entries(io::open(folder, O_RDONLY | O_DIRECTORY));
  io::fsync(entries.get());
}

checkpoint_header read_checkpoint_header(const std::string& folder, std::string_view element_class,
                                         std::string_view index_class) {
  const std::string path = header_of(folder);
  if (!fs::exists(path))
    throw usage_error(
        errc::bad_argument,
        fmt::format("{} holds no checkpoint of an array, or one that was not finished: there is no {}", folder, path));
  io::descriptor in(io::open(path, O_RDONLY));
  std::string text(fs::file_size(path), '\0');
  text.resize(io::read_all(in.get(), std::as_writable_bytes(std::span(text)), 0));
  checkpoint_header h;
  try {
    const auto j = nlohmann::json::parse(text);
    if (j.at("orrery") != "array" || j.at("version") != version)
      throw usage_error(errc::bad_argument, fmt::format("{} was written by another version of Orrery", path));
    h.name = j.at("name");
    h.element_class = j.at("class");
    h.index_class = j.at("index");
    for (const auto& p : j.at("parts")) {
      const std::string file = p.at("file");
      if (file.find('/') != std::string::npos)
        throw bad_message(errc::message_corrupt, fmt::format("{}: a part in another folder", path));
      const std::string sum = p.at("checksum");
      h.parts.push_back({file, p.at("elements"), p.at("bytes"), std::strtoull(sum.c_str(), nullptr, 16)});
    }
  } catch (const nlohmann::json::exception& e) {
    throw bad_message(errc::message_corrupt, fmt::format("{}: {}", path, e.what()));
  }
  if (h.element_class != element_class || h.index_class != index_class)
    throw usage_error(errc::bad_argument,
                      fmt::format("{} holds elements of class {} with indices of {}, not of {} with {}", folder,
                                  h.element_class, h.index_class, element_class, index_class));
  return h;
}

void throw_not_quiescent(const std::string& element) {
  throw usage_error(errc::bad_argument, fmt::format("checkpoint: {} has messages, or a method of it runs; wait for "
                                                    "quiescence() first",
                                                    element));
}

}  // namespace orrery::detail
