// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/finish.hpp>
#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/push.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/detail/scattered.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/transfer.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <utility>

namespace orrery {

/// The transfers under way. Its accesses last until it ends.
struct transfer::work {
  work() = default;
  work(const work&) = delete;
  virtual ~work() = default;
  virtual void finish() = 0;
  detail::watched_access reads;
  detail::watched_access writes;
};

transfer::transfer() noexcept = default;
transfer::transfer(transfer&&) noexcept = default;
transfer& transfer::operator=(transfer&&) noexcept = default;
transfer::~transfer() = default;
transfer::transfer(wire::unique_ptr<work> w) noexcept : work_(std::move(w)) {}

void transfer::wait() {
  if (const wire::unique_ptr<work> w = std::move(work_)) w->finish();
}

namespace detail {

namespace {

/// A mechanism with begin() and finish().
template <class M>
struct work_of : transfer::work {
  template <class... A>
  explicit work_of(const A&... given) : mechanism(given...) {}
  M mechanism;
  void finish() override { mechanism.finish(); }
};

struct pushes {
  std::vector<future<void>> sent;
  void finish() {
    (void)detail::finish(sent, [] {});
  }
};

region region_of(const rectangle& r) { return {r.row, r.rows, r.column, r.columns}; }

void watch(watched_access& w, const std::shared_ptr<const shared_object>& o, access_kind k, const rectangle& r,
           const std::source_location& where) {
  require_inside(*o, region_of(r));  // before its rows are gone through
  w.begin(o, k, where, "copy");
  if (w)
    for (std::uint64_t i = r.row; i < r.row + r.rows; ++i) w.add(i, r.column, r.columns);
}
void watch(watched_access& w, const std::shared_ptr<const shared_object>& o, access_kind k, const index_source& indices,
           const std::source_location& where, const char* what) {
  w.begin(o, k, where, what);
  if (w)
    for (std::uint64_t i = 0; i < indices.count; ++i) w.add(indices[i].row, indices[i].column, 1);
}

}  // namespace

transfer start_read(const rectangle& from, std::byte* to, std::uint64_t pitch, std::source_location where) {
  const std::shared_ptr<const shared_object> o = hold_object(from.id);
  auto w = wire::make_unique<work_of<region_reader>>();
  watch(w->reads, o, access_kind::read, from, where);
  w->mechanism.begin(o, region_of(from), to, pitch);
  return transfer(std::move(w));
}

transfer start_write(const std::byte* from, std::uint64_t pitch, const rectangle& to, std::source_location where) {
  const std::shared_ptr<const shared_object> o = hold_object(to.id);
  auto w = wire::make_unique<work_of<region_writer>>(write_site{"copy", where});
  watch(w->writes, o, access_kind::write, to, where);
  w->mechanism.begin(*o, region_of(to), from, pitch);
  return transfer(std::move(w));
}

transfer start_between(const rectangle& from, const rectangle& to, std::source_location where) {
  auto w = wire::make_unique<work_of<pushes>>();
  if (checks_sharing()) {
    watch(w->reads, hold_object(from.id), access_kind::read, from, where);
    watch(w->writes, hold_object(to.id), access_kind::write, to, where);
  }
  w->mechanism.sent = push_region(from.id, region_of(from), {to.id, to.row, to.column}, {"copy", where});
  return transfer(std::move(w));
}

transfer start_between(const shared_id& from, const index_source& of, const shared_id& to, const index_source& places,
                       std::source_location where) {
  auto w = wire::make_unique<work_of<pushes>>();
  if (checks_sharing()) {
    watch(w->reads, hold_object(from), access_kind::read, of, where, "copy");
    watch(w->writes, hold_object(to), access_kind::write, places, where, "copy");
  }
  w->mechanism.sent = push_stride(from, {of.first, of.distance, of.count}, to,
                                  {places.first, places.distance, places.count}, {"copy", where});
  return transfer(std::move(w));
}

transfer start_gather(const shared_id& from, const index_source& indices, std::byte* to, std::source_location where) {
  const std::shared_ptr<const shared_object> o = hold_object(from);
  auto w = wire::make_unique<work_of<gather_reader>>();
  watch(w->reads, o, access_kind::read, indices, where, "gather");
  w->mechanism.begin(o, indices, to);
  return transfer(std::move(w));
}

transfer start_scatter(const std::byte* from, const shared_id& to, const index_source& indices,
                       std::source_location where) {
  const std::shared_ptr<const shared_object> o = hold_object(to);
  auto w = wire::make_unique<work_of<scatter_writer>>(write_site{"scatter", where});
  watch(w->writes, o, access_kind::write, indices, where, "scatter");
  w->mechanism.begin(o, indices, from);
  return transfer(std::move(w));
}

}  // namespace detail
}  // namespace orrery
