// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/data_set_header.hpp>

#include <orrery/process/io.hpp>
#include <orrery/storage/internal/hosts.hpp>
#include <orrery/storage/internal/own_files.hpp>
#include <orrery/storage/internal/path_text.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <random>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>
#include <nlohmann/json.hpp>

namespace orrery::storage::internal {
namespace {

using detail::throw_errno;
using json = nlohmann::json;

constexpr int version = 1;
// programs that know only the first would look for all files on one machine
constexpr int version_with_hosts = 2;
constexpr std::string_view format_name = "orrery data set";
constexpr std::size_t largest_header = std::size_t{1} << 30;
constexpr std::string_view header_advice =
    "restore orrery.json from a copy, or remove the folder and its files by hand";
constexpr const char* byte_order = std::endian::native == std::endian::little ? "little" : "big";

json attributes_of(const data_set_info& info) {
  json a = json::parse(info.attributes, nullptr, false);
  if (!a.is_object())
    throw std::invalid_argument(fmt::format("the attributes of {} are no JSON object: {}", info.path, info.attributes));
  return a;
}

// The checksum of all but itself.
std::string checksum_of(json j) {
  j.erase("checksum");
  const std::string text = j.dump();
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

json to_json(const data_set_info& info, const any_page_map& map) {
  json devices = json::array();
  bool several = false;
  for (std::size_t i = 0; i < info.files.size(); ++i) {
    const std::filesystem::path file(info.files[i]);
    const bool elsewhere = !info.hosts.empty() && !info.hosts[i].empty();
    const bool own = !elsewhere && file.parent_path() == std::filesystem::path(info.path);
    devices.push_back({{"file", own ? file.filename().string() : info.files[i]}, {"pages", info.pages[i]}});
    if (elsewhere) devices.back()["host"] = info.hosts[i];
    several |= elsewhere;
  }
  json where{{"kind", info.map}};
  if (info.map != "circulant" && info.map != "blocked") {
    json table = json::array();
    for (const page_address& a : tabulate(*map)) table.push_back({a.device, a.index});
    where["table"] = std::move(table);
  }
  json j{{"format", format_name},
         {"version", several ? version_with_hosts : version},
         {"shape", info.shape},
         {"page_shape", info.page_shape},
         {"type", to_string(info.type)},
         {"byte_order", byte_order},
         {"state", info.finished ? "finished" : "unfinished"},
         {"checksums", info.checksums ? "xxh3" : "none"},
         {"map", std::move(where)},
         {"devices", std::move(devices)}};
  if (!info.attributes.empty()) j["attributes"] = attributes_of(info);
  if (info.id != 0) j["id"] = fmt::format("{:016x}", info.id);
  if (info.edition != 0) j["edition"] = fmt::format("{:016x}", info.edition);
  j["checksum"] = checksum_of(j);
  return j;
}

// The header is in order, but for other programs or machines.
struct made_elsewhere : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool good, const std::string& why) {
  if (!good) throw std::invalid_argument(why);
}

void read_devices(const json& j, const std::string& folder, data_set_info& info) {
  for (const json& d : j.at("devices")) {
    const std::string name = d.at("file").get<std::string>();
    require(is_device_name(name, info.files.size()),
            fmt::format("device {} has the file '{}', which no data set makes", info.files.size(), name));
    const auto host = d.find("host");
    info.hosts.push_back(host != d.end() ? host->get<std::string>() : std::string());
    if (!info.hosts.back().empty()) {
      const host_folder read = parse_folder(folder_text(info.hosts.back(), name));
      require(read.host == info.hosts.back() && read.folder == name,
              fmt::format("device {} has the file '{}' on the host '{}', which cannot be", info.files.size(), name,
                          info.hosts.back()));
    }
    info.files.push_back((std::filesystem::path(folder) / name).string());
    info.pages.push_back(d.at("pages").get<std::uint64_t>());
  }
  require(!info.files.empty() && info.files.size() <= 1 << 20, "it has no devices, or too many");
}

// Hexadecimal digits; 0 if there are none.
std::uint64_t digits_in(const json& j, const char* key) {
  const auto at = j.find(key);
  if (at == j.end()) return 0;
  const std::string digits = at->get<std::string>();
  const char* const end = digits.data() + digits.size();
  std::uint64_t number = 0;
  require(std::from_chars(digits.data(), end, number, 16).ptr == end, fmt::format("its \"{}\" is '{}'", key, digits));
  return number;
}

data_set_info from_json(const json& j, const std::string& folder, any_page_map& map) {
  require(j.at("format") == format_name, "its \"format\" is another one");
  if (j.at("version") != version && j.at("version") != version_with_hosts)
    throw made_elsewhere(
        fmt::format("its version is {}, and this program reads version {} and {}: use the version of "
                    "Orrery that made it",
                    j.at("version").dump(), version, version_with_hosts));
  if (j.at("byte_order") != byte_order)
    throw made_elsewhere("it was written by a machine with another byte order: read it on such a machine");
  data_set_info info;
  info.path = folder;
  info.shape = j.at("shape").get<index3>();
  info.page_shape = j.at("page_shape").get<index3>();
  const page_grid grid = page_grid::checked(info.shape, info.page_shape);
  const auto type = element_type_named(j.at("type").get<std::string>());
  require(type.has_value(), fmt::format("its \"type\" is {}", j.at("type").dump()));
  info.type = *type;
  const std::string state = j.at("state").get<std::string>();
  require(state == "finished" || state == "unfinished", fmt::format("its \"state\" is '{}'", state));
  info.finished = state == "finished";
  const std::string sums = j.at("checksums").get<std::string>();
  require(sums == "xxh3" || sums == "none", fmt::format("its \"checksums\" are '{}'", sums));
  info.checksums = sums == "xxh3";
  if (const auto a = j.find("attributes"); a != j.end()) {
    require(a->is_object(), "its \"attributes\" are no object");
    info.attributes = a->dump();
  }
  info.id = digits_in(j, "id");
  info.edition = digits_in(j, "edition");
  info.intact = j.contains("checksum") && j.at("checksum") == checksum_of(j);
  read_devices(j, folder, info);
  const auto devices = static_cast<std::uint32_t>(info.files.size());
  info.map = j.at("map").at("kind").get<std::string>();
  if (j.at("map").contains("table")) {
    std::vector<page_address> table;
    for (const json& a : j.at("map").at("table"))
      table.push_back({a.at(0).get<std::uint32_t>(), a.at(1).get<std::uint64_t>()});
    map = table_map(grid.pages(), devices, std::move(table));
  } else {
    map = make_page_map(info.map, grid.pages(), devices);
  }
  for (std::uint32_t d = 0; d < devices; ++d)
    require(info.pages[d] >= map->pages_on(d),
            fmt::format("device {} has {} pages, and the page map needs {}", d, info.pages[d], map->pages_on(d)));
  return info;
}

std::string read_text(const std::string& path) {
  const io::descriptor file = detail::open_regular(path, O_RDONLY);
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    if (before > largest_header) throw_errno(EFBIG, fmt::format("{} is no header of a data set", path));
    text.resize(before + (64 << 10));
    const std::size_t got =
        io::read_all(file.get(), std::as_writable_bytes(std::span(text.data() + before, text.size() - before)), before);
    text.resize(before + got);
    if (got == 0) return text;
  }
}

void sync_folder(const std::string& folder) {
  const io::descriptor d(folder, O_RDONLY | O_DIRECTORY);
  try {
    io::fsync(d.get());
  } catch (const std::system_error& e) {
    if (e.code().value() != EINVAL) throw;  // a file system without that
  }
}

}  // namespace

std::uint64_t new_id() {
  std::random_device random;
  std::uint64_t id = 0;
  while (id == 0) id = std::uint64_t{random()} << 32 | random();
  return id;
}

bool is_unfinished_header(const std::string& file_name) { return file_name.starts_with("orrery.json.new-"); }

void require_text(const std::string& file) {
  if (path_text(file) != file)
    throw std::invalid_argument(fmt::format(
        "the file {} cannot be one of a data set: its name would be in the header, and is no UTF-8: choose another "
        "name of the data set or folder",
        path_text(file)));
}

std::string header_path(const std::string& folder) { return folder + "/orrery.json"; }

data_set_info read_header(const std::string& folder, any_page_map* map) {
  const std::string path = header_path(folder);
  std::string text;
  require_regular(path);
  try {
    text = read_text(path);
  } catch (const std::system_error& e) {
    if (e.code().value() == ENOENT || e.code().value() == ENOTDIR)
      throw_errno(e.code().value(), fmt::format("there is no data set at {}: it has no header orrery.json", folder));
    throw_errno(e.code().value(), fmt::format("cannot read the header of the data set, {}", path));
  }
  any_page_map found;
  try {
    data_set_info info = from_json(json::parse(text), folder, found);
    if (map != nullptr) *map = std::move(found);
    return info;
  } catch (const json::exception& e) {
    throw_errno(EINVAL, fmt::format("{} is not the header of a data set, or is damaged ({}): {}", path, e.what(),
                                    header_advice));
  } catch (const made_elsewhere& e) {
    throw_errno(EINVAL, fmt::format("{} is the header of a data set that cannot be opened here: {}", path, e.what()));
  } catch (const std::invalid_argument& e) {
    throw_errno(EINVAL, fmt::format("{} is not the header of a data set that can be opened: {}; {}", path, e.what(),
                                    header_advice));
  }
}

// A second name fails where there is a file; a new name would replace it.
void rename_to_new(const std::string& from, const std::string& to, link_function link) {
  if (link(from.c_str(), to.c_str()) == 0) {
    (void)::unlink(from.c_str());
    return;
  }
  constexpr int without[] = {EPERM, EOPNOTSUPP, ENOSYS, EMLINK};  // a file system that has only one
  if (std::ranges::find(without, errno) == std::end(without)) throw_errno(errno, "link");
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) throw_errno(errno, "rename");
  (void)io::descriptor(to, O_WRONLY | O_CREAT | O_EXCL);  // who makes it may replace it
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int why = errno;
    (void)::unlink(to.c_str());
    throw_errno(why, "rename");
  }
}

void write_header(const data_set_info& info, const any_page_map& map, bool fresh) {
  const std::string path = header_path(info.path);
  const std::string beside = fmt::format("{}.new-{}", path, ::getpid());
  const std::string text = to_json(info, map).dump(1) + "\n";
  try {
    {
      io::descriptor file(beside, O_WRONLY | O_CREAT | O_TRUNC);
      io::write_all(file.get(), std::as_bytes(std::span(text)), 0);
      io::fsync(file.get());
      file.close();
    }
    if (fresh)
      rename_to_new(beside, path);
    else if (::rename(beside.c_str(), path.c_str()) != 0)
      throw_errno(errno, "rename");
    sync_folder(info.path);
  } catch (const std::system_error& e) {
    (void)::unlink(beside.c_str());
    if (e.code().value() == EEXIST)
      throw_errno(EEXIST, fmt::format("there is a data set at {} already: open it, or remove it first", info.path));
    throw_errno(e.code().value(), fmt::format("cannot write the header of the data set, {}", path));
  }
}

}  // namespace orrery::storage::internal
