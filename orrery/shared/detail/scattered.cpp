// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/finish.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/shared/detail/access.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/scattered.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/detail/transfer_limits.hpp>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace orrery::detail {

namespace {

using bytes = std::vector<std::byte>;

/// Elements of one part that are asked for together.
struct scattered_piece {
  part_places places;
  std::vector<std::uint64_t> numbers;
};

/// Calls here(number, memory) for what lies in this domain, and elsewhere(part, scattered_piece)
/// for the rest.
template <class Here, class Elsewhere>
void sort_by_owner(const shared_object& o, const index_source& indices, Here here, Elsewhere elsewhere) {
  const std::uint64_t most = std::max<std::uint64_t>(1, transfer_piece_bytes / o.element_bytes());
  std::unordered_map<std::uint32_t, scattered_piece> open;
  for (std::uint64_t i = 0; i < indices.count; ++i)
    if (const matrix_index at = indices[i]; at.row >= o.rows || at.column >= o.columns)
      throw_outside(o, at.row, at.column);
  for (std::uint64_t i = 0; i < indices.count; ++i) {
    const layout::place p = o.how().find(indices[i].row, indices[i].column);
    if (o.base[p.part] != nullptr) {
      here(i, o.base[p.part] + p.local * o.element_bytes());
      continue;
    }
    scattered_piece& w = open[p.part];
    w.places.add(p.local);
    w.numbers.push_back(i);
    if (w.numbers.size() == most) elsewhere(p.part, std::exchange(w, {}));
  }
  for (auto& [part, w] : open)
    if (!w.numbers.empty()) elsewhere(part, std::move(w));
}

/// At the owner.
void check_places(const shared_object& o, std::uint32_t part, const part_places& places) {
  if (part >= o.how().parts() || o.base[part] == nullptr || !places.inside(o.how().extent_of(part)))
    throw bad_message(errc::message_corrupt, o.about.label + ": a request for elements that are not here");
}
bytes gather_at_owner(shared_id id, std::uint32_t part, part_places places) {
  const shared_object& o = find_object(id);
  check_places(o, part, places);
  bytes values(places.count() * o.element_bytes());
  std::byte* to = values.data();
  places.for_each([&](std::uint64_t local) {
    load_here(o, o.base[part] + local * o.element_bytes(), to);
    to += o.element_bytes();
  });
  return values;
}
void scatter_at_owner(shared_id id, std::uint32_t part, part_places places, std::span<const std::byte> values,
                      std::string_view writer) {
  const shared_object& o = find_object(id);
  check_places(o, part, places);
  if (values.size() != places.count() * o.element_bytes())
    throw bad_message(errc::message_corrupt, o.about.label + ": another number of values than of places");
  if (scope_guard::is_viewed(o)) [[unlikely]]
    places.for_each([&](std::uint64_t local) { scope_guard::require_not_viewed(o, part, local, 1, writer); });
  const std::byte* from = values.data();
  places.for_each([&](std::uint64_t local) {
    store_here(o, o.base[part] + local * o.element_bytes(), from);
    from += o.element_bytes();
  });
}

}  // namespace

void part_places::add(std::uint64_t local) {
  ++count_;
  if (!steps_.empty()) {
    step& last = steps_.back();
    if (last.count == 1) last.distance = local - last.first;
    if (local == last.first + last.count * last.distance) {
      ++last.count;
      return;
    }
  }
  steps_.push_back({local, 0, 1});
}

bool part_places::inside(std::uint64_t elements) const noexcept {
  std::uint64_t sum = 0;
  for (const step& s : steps_) {
    if (s.count == 0 || s.count > count_ - sum || s.first >= elements) return false;
    sum += s.count;
    // The last one, in both directions, without an overflow.
    const bool down = s.distance > UINT64_MAX / 2;
    const std::uint64_t distance = down ? 0 - s.distance : s.distance;
    const std::uint64_t room = down ? s.first : elements - 1 - s.first;
    if (distance != 0 && s.count - 1 > room / distance) return false;
  }
  return sum == count_;
}

void gather_reader::begin(std::shared_ptr<const shared_object> from, const index_source& indices, std::byte* to) {
  from_ = std::move(from);
  to_ = to;
  const std::uint64_t size = from_->element_bytes();
  sort_by_owner(
      *from_, indices, [&](std::uint64_t i, const std::byte* at) { load_here(*from_, at, to_ + i * size); },
      [&](std::uint32_t part, scattered_piece w) {
        if (asked_.size() >= transfer_window) take_oldest();
        auto answer = start_call<&gather_at_owner>(orrery::pe(from_->how().pes[part]), from_->about.id, part, w.places);
        asked_.push_back({std::move(w.numbers), std::move(answer)});
      });
}

void gather_reader::take_oldest() {
  request r = std::move(asked_.front());
  asked_.pop_front();
  const bytes values = r.answer.get();
  const std::uint64_t size = from_->element_bytes();
  if (values.size() != r.numbers.size() * size)
    throw bad_message(errc::message_corrupt, from_->about.label + ": another number of elements than was asked for");
  for (std::size_t i = 0; i < r.numbers.size(); ++i)
    std::memcpy(to_ + r.numbers[i] * size, values.data() + i * size, size);
}

void gather_reader::finish() {
  while (!asked_.empty()) take_oldest();
}

void scatter_writer::begin(std::shared_ptr<const shared_object> to, const index_source& indices,
                           const std::byte* values) {
  to_ = std::move(to);
  try {
    send(indices, values);
  } catch (...) {  // what was sent is over when the caller hears of it
    (void)detail::finish(sent_, [] { throw; });
  }
}

void scatter_writer::send(const index_source& indices, const std::byte* values) {
  if (scope_guard::is_viewed(*to_)) [[unlikely]]
    for (std::uint64_t i = 0; i < indices.count; ++i)
      scope_guard::require_not_viewed(*to_, {indices[i].row, 1, indices[i].column, 1}, site_);
  const std::uint64_t size = to_->element_bytes();
  sort_by_owner(
      *to_, indices, [&](std::uint64_t i, std::byte* at) { store_here(*to_, at, values + i * size); },
      [&](std::uint32_t part, const scattered_piece& w) {
        bytes block(w.numbers.size() * size);
        for (std::size_t i = 0; i < w.numbers.size(); ++i)
          std::memcpy(block.data() + i * size, values + w.numbers[i] * size, size);
        if (sent_.size() >= transfer_window) {
          sent_.front().get();
          sent_.pop_front();
        }
        sent_.push_back(start_call<&scatter_at_owner>(orrery::pe(to_->how().pes[part]), to_->about.id, part, w.places,
                                                      std::span<const std::byte>(block), site_.text()));
      });
}

void scatter_writer::finish() {
  (void)detail::finish(sent_, [] {});
}

}  // namespace orrery::detail
