// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/future.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/shared/detail/access.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/detail/release_tally.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/detail/transfer_limits.hpp>
#include <orrery/shared/release.hpp>
#include <orrery/shared/scope.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstring>
#include <deque>
#include <exception>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace orrery::detail {

namespace {

constexpr std::size_t all_buffers_bytes = 4 << 20;  // of a scope; then all are sent

/// Writes to the elements of one part. The words of `places` are 4 bytes where the part's numbers
/// fit into 31 bits, else 8. A word is the number of an element, or, with its highest bit set, the
/// first of a run whose length is in the next word.
struct write_batch {
  std::uint32_t part = 0;
  bool wide = false;
  std::vector<std::uint32_t> places;  // a wide word: its lower half first
  std::vector<std::byte> values;

  template <class A>
  void serialize(A& a) {
    a & part & wide & places & values;
  }
};

class batch_writer {
 public:
  batch_writer(std::uint32_t part, bool wide) {
    batch_.part = part;
    batch_.wide = wide;
  }
  void put(std::uint64_t local, const void* value, std::size_t bytes) {
    if (last_count_ != 0 && local == last_first_ + last_count_) {
      if (++last_count_ == 2) {
        set(last_at_, last_first_ | run_mark());
        push(2);
      } else {
        set(last_at_ + words(), last_count_);
      }
    } else {
      last_at_ = batch_.places.size();
      push(local);
      last_first_ = local;
      last_count_ = 1;
    }
    const auto* from = static_cast<const std::byte*>(value);
    batch_.values.insert(batch_.values.end(), from, from + bytes);
  }
  [[nodiscard]] std::size_t size() const noexcept { return batch_.values.size() + batch_.places.size() * 4; }
  [[nodiscard]] bool empty() const noexcept { return batch_.values.empty(); }
  [[nodiscard]] write_batch take() {
    last_count_ = 0;
    write_batch next;
    next.part = batch_.part;
    next.wide = batch_.wide;
    return std::exchange(batch_, std::move(next));
  }

 private:
  [[nodiscard]] std::size_t words() const noexcept { return batch_.wide ? 2 : 1; }
  [[nodiscard]] std::uint64_t run_mark() const noexcept { return std::uint64_t{1} << (batch_.wide ? 63 : 31); }
  void push(std::uint64_t w) {
    batch_.places.resize(batch_.places.size() + words());
    set(batch_.places.size() - words(), w);
  }
  void set(std::size_t at, std::uint64_t w) {
    batch_.places[at] = static_cast<std::uint32_t>(w);
    if (batch_.wide) batch_.places[at + 1] = static_cast<std::uint32_t>(w >> 32);
  }

  write_batch batch_;
  std::size_t last_at_ = 0;
  std::uint64_t last_first_ = 0;
  std::uint64_t last_count_ = 0;
};

/// At the owner.
void write_batch_here(shared_id id, const write_batch& b, std::string_view writer) {
  const shared_object& o = find_object(id);
  const auto damaged = [&] {
    return bad_message(errc::message_corrupt, o.about.label + ": writes that make no sense");
  };
  if (b.part >= o.how().parts() || o.base[b.part] == nullptr) throw damaged();
  const bool viewed = scope_guard::is_viewed(o);
  const std::size_t words = b.wide ? 2 : 1;
  const std::uint64_t mark = std::uint64_t{1} << (b.wide ? 63 : 31);
  const std::uint64_t elements = o.how().extent_of(b.part);
  const std::size_t element = o.element_bytes();
  std::size_t at = 0;
  const auto next = [&] {
    if (b.places.size() - at < words) throw damaged();
    const std::uint64_t w = b.places[at] | (b.wide ? std::uint64_t{b.places[at + 1]} << 32 : 0);
    at += words;
    return w;
  };
  std::size_t value = 0;
  while (at < b.places.size()) {
    const std::uint64_t w = next();
    const std::uint64_t first = w & ~mark;
    const std::uint64_t count = (w & mark) != 0 ? next() : 1;
    if (first > elements || count > elements - first || count > (b.values.size() - value) / element) throw damaged();
    if (viewed) [[unlikely]]
      scope_guard::require_not_viewed(o, b.part, first, count, writer);
    for (std::uint64_t i = first; i < first + count; ++i, value += element)
      store_here(o, o.base[b.part] + i * element, b.values.data() + value);
  }
}

}  // namespace

/// Writes that were gathered and are on their way; and what has come of it, for who hears that a
/// node was lost.
struct release_scope::buffers {
  explicit buffers(const release_request& r)
      : object(hold_object(r.id)),
        writer(write_site{"release", r.where}.text()),
        most(r.options.buffer_bytes),
        tally(r, "other machines") {}

  struct message {
    future<void> answer;
    std::uint64_t writes;
  };

  std::shared_ptr<const shared_object> object;
  std::string writer;  ///< told to the owners
  std::size_t most = 0;  ///< of one batch, then it is sent
  std::unordered_map<std::uint32_t, batch_writer> of;  // by part
  std::deque<message> sent;
  std::size_t bytes = 0;
  release_tally tally;
  std::exception_ptr failure;  ///< the first

  batch_writer& to(std::uint32_t part) {
    const auto at = of.find(part);
    if (at != of.end()) return at->second;
    const bool wide = object->how().extent_of(part) >> 31 != 0;
    return of.try_emplace(part, part, wide).first->second;
  }
  void take_oldest() {
    message oldest = std::move(sent.front());
    sent.pop_front();
    try {
      oldest.answer.get();
      tally.arrived(oldest.writes);
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  void send(std::uint32_t part, batch_writer& w) {
    if (w.empty()) return;
    bytes -= w.size();
    if (sent.size() >= transfer_window) take_oldest();
    write_batch b = w.take();
    const std::uint64_t n = b.values.size() / object->element_bytes();
    try {
      sent.push_back(
          {start_call<&write_batch_here>(orrery::pe(object->how().pes[part]), object->about.id, b, writer), n});
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  void send_all() {
    for (auto& [part, w] : of) send(part, w);
  }
  /// If one fails, the others get their writes all the same.
  void finish() {
    send_all();
    while (!sent.empty()) take_oldest();
    tally.tell(object->about.label);
    throw_failure();
  }
  /// If there is one; when all answers are there, so that the count is right.
  void throw_failure() {
    if (failure == nullptr) return;
    while (!sent.empty()) take_oldest();
    tally.rethrow(failure, object->about.label);
  }
};

release_scope::release_scope(const release_request& r)
    : row_(r.row), rows_(r.rows), column_(r.column), columns_(r.columns), buffers_(new buffers(r)) {
  require_inside(*buffers_->object, {r.row, r.rows, r.column, r.columns});
  guard_.begin(buffers_->object, scope_guard::kind::write, r.where, {r.row, r.rows, r.column, r.columns});
  pitch_ = buffers_->object->columns;
  whole_ = buffers_->object->whole;
  if (r.checked) watch_.begin(buffers_->object, access_kind::write, r.where, "release");
}

release_scope::~release_scope() {
  if (buffers_ == nullptr) return;
  try {
    // an exception leaves the scope: what was written before is written, wherever the element lies
    close();
  } catch (...) {
    report_unended_scope(std::current_exception());
  }
}

void release_scope::close() {
  if (buffers_ == nullptr) return;
  const wire::unique_ptr<buffers> last = std::move(buffers_);
  last->finish();
  watch_.end();
  // some was lost meanwhile, and nobody knows what was written of it
  if (whole_ != nullptr && last->object->whole == nullptr)
    require_owners(*last->object, row_, rows_, column_, columns_);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  guard_.end();
}

void release_scope::flush() {
  if (buffers_ == nullptr) return;
  buffers_->send_all();
  buffers_->throw_failure();
}

void release_scope::put(std::uint64_t row, std::uint64_t column, const void* value) const {
  const shared_object& o = *buffers_->object;
  const layout& l = o.how();
  require_in_scope(o, {row_, rows_, column_, columns_}, row, column);
  if (watch_) [[unlikely]]
    watch_.add_now(row, column);
  const layout::place p = l.find(row, column);
  if (o.base[p.part] != nullptr) {
    if (here_pe().owner().gone_nodes() != 0) [[unlikely]]
      require_owner(o, p.part);
    return store_here(o, o.base[p.part] + p.local * o.element_bytes(), value);
  }
  batch_writer& w = buffers_->to(p.part);
  const std::size_t before = w.size();
  w.put(p.local, value, o.element_bytes());
  buffers_->tally.add();
  buffers_->bytes += w.size() - before;
  if (w.size() >= buffers_->most) {
    buffers_->send(p.part, w);
  } else if (buffers_->bytes >= all_buffers_bytes) {
    buffers_->send_all();
  } else {
    return;
  }
  buffers_->throw_failure();
}

}  // namespace orrery::detail
