// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>
#include <orrery/service/root.hpp>
#include <orrery/wire/error.hpp>

#include <utility>

#include <fmt/format.h>

namespace orrery::service {

service_root::service_root(std::string kind, std::string types, std::vector<std::uint32_t> pes)
    : kind_(std::move(kind)), types_(std::move(types)), pes_(std::move(pes)) {
  if (pes_.empty()) throw usage_error(errc::bad_argument, "a service needs at least one PE");
}

opening service_root::open(const std::string& kind, const std::string& types) const {
  if (kind != kind_)
    throw usage_error(errc::bad_argument, fmt::format("this service is a {}; it was opened as a {}", kind_, kind));
  if (types != types_)
    throw usage_error(
        errc::bad_argument,
        fmt::format("this {} has other types of keys or values than those that it was opened with", kind_));
  return {directory_, head_};
}

std::uint32_t service_root::next_pe() { return pes_[next_++ % pes_.size()]; }

namespace {

// The results of calls to ranges, without those of ranges that are lost or gone.
template <class T, class Begin, class Take>
void ask_all(const std::vector<directory_entry>& ranges, Begin begin, Take take) {
  std::vector<future<T>> answers;
  const auto unless_lost = [](auto f) {
    try {
      f();
    } catch (const node_lost&) {
    } catch (const process_gone&) {
    }
  };
  for (const directory_entry& e : ranges) unless_lost([&] { answers.push_back(begin(e.owner)); });
  for (future<T>& a : answers) unless_lost([&] { take(a); });
}

// The root does not wait for ranges: one that splits calls the root.
void post_tune(const remote<range_process>& range, std::uint32_t items) {
  try {
    post(range)->tune(items);
  } catch (const node_lost&) {
  } catch (const process_gone&) {
  }
}

}  // namespace

void service_root::add(bytes least, remote<range_process> owner) {
  directory_.push_back({std::move(least), owner});
  if (tuned_ != 0) post_tune(owner, tuned_);
}

void service_root::tune(std::uint32_t items) {
  tuned_ = items;
  for (const directory_entry& e : directory_) post_tune(e.owner, items);
}

void service_root::end() {
  if (head_) directory_.push_back({{}, std::exchange(head_, {})});
  ask_all<void>(
      std::exchange(directory_, {}), [](const auto& p) { return start_destroy(p); }, [](auto& f) { f.get(); });
}

std::vector<range_report> service_root::reports() const {
  std::vector<range_report> all;
  ask_all<range_report>(
      directory_, [](const auto& p) { return start(p)->report(); }, [&](auto& f) { all.push_back(f.get()); });
  return all;
}

}  // namespace orrery::service
