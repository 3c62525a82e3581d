// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/broadcast_answer.hpp>
#include <orrery/process/detail/broadcast_base.hpp>
#include <orrery/process/detail/part_result.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery::detail {

// Results as they come, in any order.
template <class R>
class result_table {
  static constexpr bool direct = std::is_default_constructible_v<R> && std::is_move_assignable_v<R>;

 public:
  explicit result_table(std::size_t n) : values_(n) {}
  template <class F>
  void set(std::size_t i, F&& f) {
    if constexpr (direct) {
      values_[i] = f();
    } else {
      values_[i].emplace(f());
    }
  }
  R take(std::size_t i) {
    if constexpr (direct) {
      return std::move(values_[i]);
    } else {
      return std::move(*values_[i]);
    }
  }
  std::vector<R> take_all() {
    if constexpr (direct) {
      return std::move(values_);
    } else {
      std::vector<R> all;
      all.reserve(values_.size());
      for (auto& v : values_) all.push_back(std::move(*v));
      return all;
    }
  }

 private:
  std::vector<std::conditional_t<direct, R, std::optional<R>>> values_;
};
template <>
class result_table<void> {
 public:
  explicit result_table(std::size_t) {}
};

/// All results.
struct gather_fold {
  template <class R>
  static void finish(group_part&, result_table<R>& table, part_result<R>& result) {
    if constexpr (!std::is_void_v<R>) result.values = table.take_all();
  }
};
/// The results of consecutive ranks, combined.
template <class Op>
struct reduce_fold {
  template <class R>
  static void finish(group_part& part, result_table<R>& table, part_result<R>& result) {
    const auto& members = part.members();
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (part.begins_run(i)) {
        result.values.push_back(table.take(i));
      } else {
        result.values.back() = Op{}(std::move(result.values.back()), table.take(i));
      }
    }
  }
};

/// The results of a broadcast at one part, and its answer.
template <class R, class Fold>
struct broadcast_results : broadcast_base {
  using result_type = part_result<R>;

  result_table<R> results;

  broadcast_results(group_part& p, const scheduler::handler& h, const scheduler::handler& member)
      : broadcast_base(p, h, member), results(p.members().size()) {}

  void answer(pe& self) noexcept final {
    if (reply == 0) {
      if (error != nullptr) self.failures().report_post(method, error);
      delete this;
      return;
    }
    auto l = wire::make_unique<late>(take_result());
    l->method = method;
    l->reply = reply;
    l->source_pe = source_pe;
    const bool far = by_wire;
    delete this;
    if (far) {
      answer_later(self, std::move(l));
      return;
    }
    auto* k = reinterpret_cast<scheduler::sink*>(l->reply);
    new (k->storage) result_type(std::move(l->result));
    if (l->source_pe == self.id()) {
      k->state = scheduler::sink::status::value;
      self.complete(*k);
      return;
    }
    try {
      self.links().send_control(self.outbound_to(l->source_pe), wire::record_kind::reply, 0, 0, l->reply);
    } catch (const orrery::error&) {  // only while shutting down
    }
  }

 private:
  struct late final : late_answer {
    result_type result;
    explicit late(result_type&& r) noexcept : result(std::move(r)) {}
    void send(pe& self) override {
      if (on_this_node(self, source_pe)) {  // see send_through_wire
        detail::answer<result_type>(self, reply, source_pe, false, [&] { return written_and_read(result); });
      } else {
        detail::answer<result_type>(self, reply, source_pe, true, [&]() -> result_type&& { return std::move(result); });
      }
    }
  };

  result_type take_result() noexcept {
    result_type r;
    r.method = method;
    if (error == nullptr) {
      try {
        Fold::template finish<R>(*part, results, r);
      } catch (...) {
        fail(0, std::current_exception());
      }
    }
    r.failed = failed;
    r.error = std::move(error);
    return r;
  }
};

}  // namespace orrery::detail
