// SPDX-License-Identifier: Apache-2.0
#include "data.hpp"

#include "array_file.hpp"
#include "attach.hpp"
#include "commands.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <orrery/orrery.hpp>
#include <orrery/storage/storage.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace orrery::tool {
namespace {

using namespace orrery::storage;
using nlohmann::ordered_json;

constexpr std::size_t block_bytes = 32 << 20;  // and as much again for the pages of it that are on their way

index3 three(const std::vector<std::int64_t>& sides) {
  if (sides.size() != 3 || std::ranges::any_of(sides, [](std::int64_t n) { return n <= 0; }))
    throw command_error("a shape has three sides above 0: 512,512,512");
  return {sides[0], sides[1], sides[2]};
}

// Of some 64^3 elements, but no longer than the array.
index3 usual_pages(const index3& shape) {
  constexpr std::int64_t side = 64;
  if (std::ranges::any_of(shape, [](std::int64_t n) { return n <= 0; })) return {side, side, side};  // is refused
  index3 pages{};
  for (std::size_t k = 0; k < 3; ++k) pages[k] = std::min(shape[k], side);
  for (std::size_t k = 3; k-- > 0;)
    while (pages[k] < shape[k] && 2 * product(pages) <= side * side * side) pages[k] = std::min(2 * pages[k], shape[k]);
  return pages;
}

element_type type_named(const std::string& name) {
  const auto type = element_type_named(name);
  if (!type) throw command_error(fmt::format("there is no type '{}': float32, float64, complex64, complex128", name));
  return *type;
}

// These commands go through an array once: a cache is good for pages that are written in parts.
data_set_options once_through() { return {.cache = {.cache_pages = 4, .write_behind_pages = 8}}; }

remote<data_set> create(const data_request& r, const index3& shape, element_type type, std::string attributes) {
  return spawn<data_set>(
      here(), r.path,
      data_set_description{.shape = shape,
                           .page_shape = r.page_shape.empty() ? usual_pages(shape) : three(r.page_shape),
                           .type = type,
                           .folders = r.folders,
                           .attributes = std::move(attributes)},
      once_through());
}

// Memory for a block, kept from one to the next.
std::span<std::byte> memory_for(page& buffer, const domain& d, element_type type) {
  const std::size_t bytes = static_cast<std::size_t>(d.size()) * size_of(type);
  if (buffer.size() < bytes) {
    buffer = page();
    buffer = page::uninitialized(bytes);
  }
  return buffer.writable().first(bytes);
}

storage::array contents_of(const remote<data_set>& set) {
  set_page_pool_limit(block_bytes);
  storage::array a = set->contents();
  a.set_window(block_bytes);
  return a;
}

void fill(const storage::array& a, array_source& file) {
  progress bar("import", static_cast<std::uint64_t>(product(file.shape)) * size_of(file.type));
  page buffer;
  for_each_block(file, a.grid().page_shape, block_bytes, [&](const domain& d) {
    const auto memory = memory_for(buffer, d, file.type);
    file.read(d, memory);
    a.write_bytes(d, file.order, memory, file.type);
    bar.add(memory.size());
  });
}

}  // namespace

int in_world(const std::function<int()>& body) {
  // These commands need files, not a named world, in which their PEs would serve others.
  ::unsetenv("ORRERY_WORLD");  // NOLINT(concurrency-mt-unsafe): before there are threads
  std::string name = "orrery";
  char* argv[] = {name.data(), nullptr};
  return run(1, argv, [&](const args&) {
    try {
      return body();
    } catch (const command_error& e) {
      (void)fail(e.what());
      return command_error::exit_code;
    } catch (const std::exception& e) {
      return fail(e.what());
    }
  });
}

// The name of a device file is easily given by mistake.
void check_outside_of_data_sets(const std::string& file) {
  const auto folder = std::filesystem::absolute(file).parent_path();
  if (std::filesystem::exists(folder / "orrery.json"))
    throw std::invalid_argument(
        fmt::format("{} would be in the data set {}: choose another place", file, folder.string()));
}

void export_part(const data_request& r, const domain& part) {
  check_outside_of_data_sets(r.file);
  data_set_options options = once_through();
  options.unfinished = r.unfinished;
  const auto set = spawn<data_set>(here(), r.path, options);
  const storage::array a = contents_of(set);
  const auto file = make_sink({.path = r.file,
                               .dataset = r.dataset,
                               .shape = part.shape(),
                               .type = a.type(),
                               .attributes = set->info().attributes,
                               .first = part.first});
  {
    progress bar("export", static_cast<std::uint64_t>(part.size()) * size_of(a.type()));
    page buffer;
    for_each_block(*file, a.grid().page_shape, block_bytes, [&](const domain& d) {
      const auto memory = memory_for(buffer, d, a.type());
      domain there = d;
      for (std::size_t k = 0; k < 3; ++k) {
        there.first[k] += part.first[k];
        there.last[k] += part.first[k];
      }
      a.read_bytes(there, file->order, memory, a.type());
      file->write(d, memory);
      bar.add(memory.size());
    });
  }
  file->finish();
}

int data_info(const data_request& r) {
  return in_world([&] {
    const data_set_info i = data_set::read_info(r.path);
    std::vector<std::string> devices;
    for (std::size_t d = 0; d < i.files.size(); ++d)
      devices.push_back(i.hosts[d].empty() ? i.files[d] : i.hosts[d] + ":" + i.files[d]);
    const ordered_json attributes = ordered_json::parse(i.attributes.empty() ? "{}" : i.attributes);
    if (r.json) {
      print_json({{"path", i.path},
                  {"shape", i.shape},
                  {"page_shape", i.page_shape},
                  {"type", to_string(i.type)},
                  {"map", i.map},
                  {"checksums", i.checksums},
                  {"finished", i.finished},
                  {"intact", i.intact},
                  {"attributes", attributes},
                  {"devices", devices}});
      return 0;
    }
    fmt::print("{}: {} elements of type {} in pages of {}, {}{}{}\n", printable(i.path), storage::to_string(i.shape),
               to_string(i.type), storage::to_string(i.page_shape),
               i.checksums ? "with checksums" : "without checksums",
               i.finished ? "" : "; unfinished: its last writer is still at work, or was interrupted",
               i.intact ? "" : "; its header was changed: this may be untrue, restore it from a copy");
    for (std::size_t d = 0; d < i.files.size(); ++d)
      fmt::print("  device {}: {}, {} pages ({} map)\n", d, printable(devices[d]), i.pages[d], i.map);
    for (const auto& [key, value] : attributes.items())
      fmt::print("  {}: {}\n", printable(key), printable(value.dump()));
    return 0;
  });
}

int data_verify(const data_request& r) {
  return in_world([&] {
    const auto set = spawn<data_set>(here(), r.path, data_set_options{.unfinished = true});
    const page_grid grid = set->contents().grid();
    const index3 pages = grid.pages();
    const std::size_t element_bytes = size_of(set->contents().type());
    std::vector<page_damage> damage;
    {
      progress bar("verify", static_cast<std::uint64_t>(product(grid.array_shape)) * element_bytes);
      // A line of pages at a time, and the next is asked for before the first has answered.
      std::deque<std::pair<std::uint64_t, future<std::vector<page_damage>>>> under_way;
      const auto take = [&] {
        auto [bytes, answer] = std::move(under_way.front());
        under_way.pop_front();
        std::ranges::move(answer.get(), std::back_inserter(damage));
        bar.add(bytes);
      };
      for_each_place(domain{{0, 0, 0}, {pages[0], pages[1], 1}}, [&](const index3& p) {
        domain elements = grid.elements_of(p);
        elements.last[2] = grid.array_shape[2];
        under_way.emplace_back(static_cast<std::uint64_t>(elements.size()) * element_bytes,
                               start(set)->verify_part(domain{p, {p[0] + 1, p[1] + 1, pages[2]}}));
        if (under_way.size() > 2) take();
      });
      while (!under_way.empty()) take();
    }
    if (r.json) {
      auto list = ordered_json::array();
      for (const page_damage& d : damage) list.push_back({{"page", d.page}, {"what", d.what}});
      print_json({{"damaged", std::move(list)}});
    } else {
      for (const page_damage& d : damage)
        fmt::print("({}, {}, {}): {}\n", d.page[0], d.page[1], d.page[2], printable(d.what));
      fmt::print("{} of {} pages cannot be trusted\n", damage.size(), grid.page_count());
    }
    return damage.empty() ? 0 : 1;
  });
}

int data_create(const data_request& r) {
  return in_world([&] {
    create(r, three(r.shape), type_named(r.type.empty() ? "complex128" : r.type), {})->finish();
    return 0;
  });
}

int data_import(const data_request& r) {
  return in_world([&] {
    file_request f{.path = r.file, .dataset = r.dataset, .shape = {}, .type = {}};
    if (!r.shape.empty()) f.shape = three(r.shape);
    if (!r.type.empty()) f.type = type_named(r.type);
    const auto file = open_source(f);
    const auto set = create(r, file->shape, file->type, file->attributes);
    try {
      fill(contents_of(set), *file);
      set->finish();
    } catch (...) {
      destroy(set);
      data_set::remove(r.path);  // what is half there would only be in the way of the next attempt
      throw;
    }
    return 0;
  });
}

int data_export(const data_request& r) {
  return in_world([&] {
    export_part(r, domain::of_shape(data_set::read_info(r.path).shape));
    return 0;
  });
}

// With the jobs that were interrupted while they made it, or replaced it. These hold parts of it, so
// nothing of them goes before it is known that it can go itself.
int data_remove(const data_request& r) {
  return in_world([&] {
    std::exception_ptr missing;
    try {
      data_set::require_removable(r.path);
    } catch (const std::system_error&) {
      if (std::filesystem::exists(std::filesystem::path(r.path) / "orrery.json")) throw;
      missing = std::current_exception();
    }
    const std::size_t jobs = job_folder::forget(r.path);
    if (missing == nullptr) {
      data_set::remove(r.path);
    } else if (jobs == 0) {
      std::rethrow_exception(missing);
    }
    return 0;
  });
}

}  // namespace orrery::tool
