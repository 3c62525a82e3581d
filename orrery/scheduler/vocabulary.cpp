// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/vocabulary.hpp>

#include <orrery/scheduler/handler.hpp>
#include <orrery/scheduler/program_code.hpp>
#include <orrery/wire/type_description.hpp>

#include <cstring>
#include <unordered_map>

#include <elf.h>
#include <link.h>
#include <xxhash.h>

namespace orrery::scheduler {
namespace {

std::uint64_t hash_of(std::string_view text) noexcept { return XXH3_64bits(text.data(), text.size()); }

template <class... T>
std::uint64_t mix(T... parts) noexcept {
  const std::uint64_t all[] = {parts...};
  return XXH3_64bits(all, sizeof all);
}

// The note that linkers write; 0: there is none.
std::uint64_t build_note() noexcept {
  std::uint64_t found = 0;
  // The first object is the program.
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) -> int {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_NOTE) continue;
          const auto* at = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
          for (std::size_t left = segment.p_memsz; left > sizeof(ElfW(Nhdr));) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof note);
            const std::size_t name = (note.n_namesz + 3U) / 4 * 4;
            const std::size_t size = sizeof note + name + (note.n_descsz + 3U) / 4 * 4;
            if (size > left) break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(at + sizeof note, "GNU", 4) == 0)
              *static_cast<std::uint64_t*>(to) = XXH3_64bits(at + sizeof note + name, note.n_descsz);
            at += size;
            left -= size;
          }
        }
        return 1;
      },
      &found);
  return found;
}

}  // namespace

std::uint64_t build_of_program() noexcept {
  static const std::uint64_t build = [] {
    const std::uint64_t note = build_note();
    return note != 0 ? note : XXH3_64bits(code_of_program().begin, code_of_program().size());
  }();
  return build;
}

own_vocabulary::own_vocabulary() {
  std::unordered_map<std::uint64_t, std::uint32_t> times;  // that a name is used
  const auto handlers = own_handlers();
  for (const handler* h : handlers) ++times[h->hash];
  std::unordered_map<std::uint64_t, std::uint32_t> turn;
  // by what they look like: names may be used twice
  std::unordered_map<std::string, std::uint32_t> types;
  all_.id = handlers.size();
  for (const handler* h : handlers) {
    transport::vocabulary::word w;
    w.key = h->hash;
    if (times[h->hash] > 1) {
      w.key = mix(w.key, build_of_program(), std::uint64_t{++turn[h->hash]});
    } else if (wire::is_local_key(h->signature)) {
      w.key = mix(w.key, build_of_program());
    } else if (!h->object.empty()) {
      w.place = mix(hash_of(wire::stable_key(h->object)), hash_of(h->method));
    }
    w.of = h->class_name;
    w.method = h->method;
    wire::type_description shape;
    if (h->describe != nullptr) h->describe(shape);
    w.shape = hash_of(shape.text());
    w.parts = shape.layouts()[0].text;
    for (std::size_t i = 1; i < shape.layouts().size(); ++i) {
      const wire::type_description::layout& l = shape.layouts()[i];
      std::string key = wire::stable_key(l.type);
      const auto [it, fresh] = types.try_emplace(key + ':' + l.text, static_cast<std::uint32_t>(all_.types.size()));
      if (fresh) all_.types.push_back({keys_.emplace_back(std::move(key)), l.text});
      w.types.push_back(it->second);
    }
    all_.id = mix(all_.id, w.key, w.shape, w.place);
    all_.words.push_back(std::move(w));
  }
}

}  // namespace orrery::scheduler
