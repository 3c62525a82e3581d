// SPDX-License-Identifier: Apache-2.0
// Reads records as another OS process may have left them in a ring, and the arguments in them: the ring's reader never leaves the ring,
// and a handler either refuses its payload or runs its method. The first byte of an input says which:
//     0  the rest is the memory of a ring
//     1  the rest is a record: the second byte chooses the handler, the third the form, then the payload
//
//     fuzz_envelope --seeds=DIRECTORY     writes a ring and a good message for each method there, and ends
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <orrery/orrery.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/wire/exception.hpp>

namespace {

using orrery::wire::granule;

void check(bool condition) {
  if (!condition) std::abort();
}

struct page {
  int number = 0;
  std::string title;
  std::vector<double> numbers;
};

// A class with parameters of all kinds: values, views, containers, aggregates, remote pointers.
struct subject {
  int add(int a, int b) { return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)); }
  double sum(std::span<const double> v) { return v.empty() ? 0 : v.back(); }
  std::size_t length(std::string_view s, const std::string& t) { return s.size() + t.size(); }
  void keep(page p, std::optional<std::uint8_t> o) { kept = p.title.size() + p.numbers.size() + (o ? *o : 0); }
  std::size_t count(const std::map<std::string, std::vector<std::uint16_t>>& m) { return m.size(); }
  bool points(orrery::remote<subject> other) { return static_cast<bool>(other); }
  void take(std::unique_ptr<page> p) { kept = p != nullptr ? p->numbers.size() : 0; }
  void nothing() { ++kept; }
  std::size_t kept = 0;
};
ORRERY_PROCESS(subject, add, sum, length, keep, count, points, take, nothing);

// A method has a handler if something calls it.
[[gnu::used]] void call_all(const orrery::remote<subject>& p) {
  (void)p->add(1, 2);
  (void)p->sum(std::vector<double>{});
  (void)p->length("", "");
  p->keep({}, {});
  (void)p->count({});
  (void)p->points(p);
  p->take(nullptr);
  p->nothing();
}

constexpr std::uint64_t capacity = 4096;

// Takes what is there, as a PE does. It ends: the writer of the ring does nothing any more.
void read_ring(std::span<const std::uint8_t> bytes) {
  using namespace orrery::transport;
  constexpr std::size_t size = ring_header::bytes_for(capacity);
  static std::byte* const memory = static_cast<std::byte*>(std::aligned_alloc(64, size));
  std::memset(memory, 0, size);
  ring_header& header = *make_ring(memory, capacity, 1, 0);
  std::memcpy(header.data(), bytes.data(), std::min<std::size_t>(bytes.size(), capacity));
  ring_consumer ring(header, capacity);
  std::uint64_t taken = 0;
  while (orrery::wire::envelope* e = ring.front()) {
    const auto at = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(e) - header.data());
    check(at < capacity && ring.front_bytes() >= granule && at + ring.front_bytes() <= capacity);
    // The size is not to be read again: it may have changed.
    e->size.store(0xffff'ffff, std::memory_order_relaxed);
    taken += ring.front_bytes();
    (void)ring.pop();
    e->size.store(0, std::memory_order_relaxed);
    if (taken > 4 * capacity) break;  // records that lie in each other may lead round
  }
}

// Not those that construct and destroy, which other processes must not be told to do.
constexpr std::string_view methods[] = {"add", "sum", "length", "keep", "count", "points", "take", "nothing"};

std::vector<const orrery::scheduler::handler*> handlers_of_subject() {
  std::vector<const orrery::scheduler::handler*> found;
  for (const auto* h : orrery::scheduler::handler_table())
    if (h->class_name.find("subject") != std::string_view::npos &&
        std::ranges::find(methods, h->method) != std::end(methods))
      found.push_back(h);
  return found;
}

// Executes a message from a PE that cannot be answered, at a fresh process.
void run_handler(std::span<const std::uint8_t> bytes) {
  using namespace orrery;
  const auto handlers = handlers_of_subject();
  check(handlers.size() >= 8);
  scheduler::pe& self = *scheduler::current_pe;
  const auto process = spawn<subject>(here());
  scheduler::slot* s = self.find(process.address().slot, process.address().generation);
  check(s != nullptr);
  const auto payload = bytes.subspan(2);
  // Aligned and of this size exactly, so that reading behind it is seen.
  const std::unique_ptr<std::byte[], decltype(&std::free)> copy(
      static_cast<std::byte*>(std::aligned_alloc(16, (payload.size() + 15) / 16 * 16 + 16)), &std::free);
  std::memcpy(copy.get(), payload.data(), payload.size());
  scheduler::delivery d;
  d.self = &self;
  d.method = handlers[bytes[0] % handlers.size()];
  d.payload = copy.get();
  d.payload_bytes = payload.size();
  d.reply = 1;
  d.source_pe = 77;  // there is none: the answer is dropped
  d.form = wire::payload_form::wire;
  d.remote = true;
  d.method->run(self, *s, d);
  if (self.find(process.address().slot, process.address().generation) != nullptr) destroy(process);
  // As the exception of a failed call.
  try {
    reader r({copy.get(), payload.size()});
    const auto what = read<wire_exception>(r);
    check(decode_exception(what, {"Class", "method", 1}) != nullptr);
  } catch (const bad_message&) {
  }
}

template <class F>
void in_world(F&& f) {
  using namespace orrery;
  scheduler::freeze_handlers();
  scheduler::node_settings settings;
  settings.pes = 1;
  settings.pin = false;
  scheduler::node world(settings, nullptr);
  world.run([&](scheduler::pe& first) {
    detail::start_function(first, [&] {
      f();
      world.stop();
    });
  });
}

template <class... P>
std::string encoded(const P&... values) {
  std::string bytes(orrery::wire_size(values...), '\0');
  orrery::writer w(std::as_writable_bytes(std::span(bytes)));
  (orrery::write(w, values), ...);
  return bytes;
}

void write_seeds(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  int number = 0;
  const auto seed = [&](const std::string& bytes) {
    std::ofstream file(directory / std::to_string(number++), std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    check(file.flush().good());
  };
  const auto good = [&](const std::string& payload) {
    for (char h = 0; h < 8; ++h) seed(std::string{1, h, 0} + payload);
  };
  const std::vector<double> numbers{1, 2, 3};
  good(encoded(1, 2));
  good(encoded(std::span<const double>(numbers)));
  good(encoded(std::string_view("view"), std::string("text")));
  good(encoded(page{1, "title", numbers}, std::optional<std::uint8_t>(3)));
  good(encoded(std::map<std::string, std::vector<std::uint16_t>>{{"a", {1, 2}}, {"b", {}}}));
  good(encoded(std::make_unique<page>()));
  // Rings: a message and a reply; a filler at the beginning; a record behind the end.
  std::string ring(256, '\0');
  const auto put = [&](std::size_t at, std::uint32_t size, std::uint8_t kind) {
    std::memcpy(ring.data() + at, &size, sizeof size);
    ring[at + 4] = static_cast<char>(kind);
  };
  put(0, 64, 1);
  put(64, 32, 2);
  seed(std::string(1, '\0') + ring);
  put(96, 32, 0);
  seed(std::string(1, '\0') + ring);
  put(96, 8192, 1);
  seed(std::string(1, '\0') + ring);
  put(0, 33, 1);
  seed(std::string(1, '\0') + ring);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view option = "--seeds=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (!argument.starts_with(option)) continue;
    write_seeds(argument.substr(option.size()));
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  if (size == 0 || data[0] > 1) return -1;
  if (data[0] == 0) {
    read_ring(bytes.subspan(1));
  } else if (size >= 3) {
    in_world([&] { run_handler(bytes.subspan(1)); });
  }
  return 0;
}
