// SPDX-License-Identifier: Apache-2.0
// Frames as another machine may send them: whatever is in them, a carrier takes what they say into
// its node's memory, or treats their sender as lost. It never ends its own node, and its memory
// stays in order. An input is frames of node 1, each behind its size in 16 bits; their heads are
// made good, so that what is behind them counts.
//
//     fuzz_carrier --seeds=DIRECTORY      writes what a carrier sends, and ends
#include <orrery/transport/mpi/carrier.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace orrery::transport;
namespace wire = orrery::wire;

void check(bool condition) {
  if (!condition) std::abort();
}

/// Sends into nothing; blocks are there at once.
class fed_engine final : public engine {
 public:
  bool send(std::uint32_t, int, std::span<const std::byte>, request& begun) override {
    begun = 0;
    return true;
  }
  bool receive(std::uint32_t, int tag, std::span<std::byte> into, request& begun) override {
    begun = ++requests_;
    posted_.emplace_back(begun, into, tag != 0);
    return true;
  }
  outcome test(request& begun, std::uint32_t& from, std::uint64_t& bytes) override {
    if (begun == 0) return outcome::done;
    const auto it = std::ranges::find(posted_, begun, &posted::number);
    if (it == posted_.end() || (!it->is_block && frame.empty())) return outcome::pending;
    from = 1;
    bytes = it->is_block ? it->into.size() : frame.size();
    if (!it->is_block) std::ranges::copy(std::exchange(frame, {}), it->into.begin());
    posted_.erase(it);
    return outcome::done;
  }
  void cancel(request&) override {}
  [[nodiscard]] std::string error() const override { return "none"; }

  std::vector<std::byte> frame;

 private:
  struct posted {
    request number;
    std::span<std::byte> into;
    bool is_block;
    posted(request n, std::span<std::byte> s, bool b) : number(n), into(s), is_block(b) {}
  };
  std::deque<posted> posted_;
  request requests_ = 0;
};

constexpr std::uint64_t ring_bytes = 8192;
constexpr std::uint64_t most_memory = 1 << 20;

/// Node 2 of three, each of one PE on a machine of its own.
struct receiver {
  receiver() {
    world_config config;
    config.program = "fuzz";
    config.memory_limit = most_memory;
    memory = std::move(*shm_world::create(config));
    auto block = memory->allocate_ring(ring_header::bytes_for(ring_bytes));
    std::memset(block->data, 0, ring_header::bytes_for(ring_bytes));
    carrier = wire::make_unique<mpi_carrier>(
        library, *memory, map, members, 1'000'000'000,
        [](const std::string& line) { check(line.find("is taken for lost by the first node") != std::string::npos); },
        [] { return 0; },
        [this](std::uint64_t bytes) -> result<world::memory_block> {
          if (bytes > most_memory) return std::unexpected(transport_error{transport_errc::no_space, 0, "enough"});
          return memory->allocate_beyond(bytes);
        });
    check(carrier->begin());
    carrier->add_ring(2, 1, block->offset, *make_ring(block->data, ring_bytes, 2, 1));
  }
  void bring(std::span<const std::uint8_t> rest) {
    const frame_head head{frame_head::magic_value, 1, static_cast<std::uint32_t>(sizeof(frame_head) + rest.size()), 0};
    library.frame.resize(sizeof head + rest.size());
    std::memcpy(library.frame.data(), &head, sizeof head);
    if (!rest.empty()) std::memcpy(library.frame.data() + sizeof head, rest.data(), rest.size());
    (void)carrier->drive();
    (void)carrier->drive();
  }
  // The work of a PE with the records of the ring from PE 1.
  void read() {
    const auto at = carrier->mirror_offset(2, 1);
    if (!at) return;
    if (!reader) {
      const auto bytes = memory->map(memory->node(), *at, sizeof(ring_header));
      check(bytes.has_value());
      auto& header = *reinterpret_cast<ring_header*>(bytes->data());
      reader.emplace(header, header.capacity);
    }
    for (const wire::envelope* e = reader->front(); e != nullptr; e = reader->front()) {
      if (has_block(*e)) {
        wire::block_ref ref{};
        std::memcpy(&ref, reinterpret_cast<const std::byte*>(e + 1), sizeof ref);
        check(memory->memory().block_bytes(ref.offset / page_bytes * page_bytes) >= ref.bytes);
      }
      (void)reader->pop();
    }
    check(!reader->corrupt());
  }

  wire::unique_ptr<shm_world> memory;
  fed_engine library;
  cluster_map map{{{0, 0, 1, 0, 0}, {1, 1, 1, 0, 0, 64 << 20, 65536}, {2, 2, 1, 0, 0}}, 2};
  cluster_members members{3, 2};
  wire::unique_ptr<mpi_carrier> carrier;
  std::optional<ring_consumer> reader;
};

// --- seeds ---------------------------------------------------------------------------------------

std::span<std::byte> put(frame& f, const section& s) { return {f.add(s), s.bytes}; }

void add_record(frame& f, std::uint64_t position, bool is_block) {
  wire::envelope e{};
  e.size.store(2 * wire::granule, std::memory_order_relaxed);
  e.kind = wire::record_kind::message;
  e.form = is_block ? wire::payload_form::block : wire::payload_form::wire;
  const wire::block_ref ref{4096, 10'000};
  constexpr std::uint32_t bytes = sizeof e + sizeof ref;
  const auto at = is_block ? put(f, {section_kind::block, bytes, 1, 2, position, 1})
                           : put(f, {section_kind::records, 2 * wire::granule, 1, 2, position, 2 * wire::granule});
  std::ranges::fill(at, std::byte{});
  std::memcpy(at.data(), &e, sizeof e);
  std::memcpy(at.data() + sizeof e, &ref, sizeof ref);
}

frame& begin_frame(std::vector<frame>& in) {
  in.emplace_back().begin(1);
  return in.back();
}

void write(const std::string& file, std::vector<frame> frames) {
  std::ofstream out(file, std::ios::binary);
  for (frame& f : frames) {
    const auto rest = f.finish().subspan(sizeof(frame_head));
    const auto size = static_cast<std::uint16_t>(rest.size());
    out.write(reinterpret_cast<const char*>(&size), sizeof size);
    out.write(reinterpret_cast<const char*>(rest.data()), static_cast<std::streamsize>(rest.size()));
  }
}

void write_seeds(const std::string& folder) {
  std::vector<frame> records;
  frame& first = begin_frame(records);
  (void)put(first, {section_kind::open, 0, 1, 2, 0, ring_bytes});
  add_record(first, 0, false);
  add_record(first, 64, true);
  add_record(begin_frame(records), 128, false);
  write(folder + "/records", std::move(records));

  std::vector<frame> news;
  frame& n = begin_frame(news);
  for (std::uint64_t kind = 1; kind <= 4; ++kind) (void)put(n, {section_kind::state, 0, 1, 0, 0, kind});
  write(folder + "/news", std::move(news));

  std::vector<frame> others;
  frame& o = begin_frame(others);
  (void)put(o, {section_kind::credit, 0, 2, 1, 0, 0});
  (void)put(o, {section_kind::ask, 0, 0, 0, 1, 3});
  std::ranges::fill(put(o, {section_kind::counters, counters_per_pe * 8, 1, 1, 1, 0}), std::byte{1});
  std::ranges::fill(put(o, {section_kind::names, 5, 1, 0, 0, 5}), std::byte{'x'});
  std::ranges::fill(put(o, {section_kind::part, 5, 1, 0, 0, 0}), std::byte{'x'});
  std::ranges::fill(put(o, {section_kind::eviction, 9, 0, 0, 1, 0}), std::byte{'x'});
  write(folder + "/others", std::move(others));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view option = "--seeds=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view a = (*argv)[i];
    if (!a.starts_with(option)) continue;
    write_seeds(std::string(a.substr(option.size())));
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  receiver node;
  std::span<const std::uint8_t> left(data, bytes);
  while (left.size() >= 2) {
    std::uint16_t size = 0;
    std::memcpy(&size, left.data(), sizeof size);
    left = left.subspan(2);
    const std::size_t n = std::min({std::size_t{size}, left.size(), frame::capacity - sizeof(frame_head)});
    node.bring(left.first(n));
    left = left.subspan(n);
    node.read();
  }
  node.carrier->report_lost(1, "is over");
  check(node.memory->memory().consistent());
  return 0;
}
