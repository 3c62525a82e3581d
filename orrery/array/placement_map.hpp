// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/index.hpp>
#include <orrery/process/function.hpp>
#include <orrery/wire/counted_ptr.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery {

[[nodiscard]] std::uint32_t world_pes();  // process/runtime.hpp

/// The indices of a dense array: 0 to extent - 1 in each dimension. Elements of a range are
/// numbered with the last dimension fastest.
template <array_index Index>
struct range {
  Index extent{};

  /// The most that there can be where it is more than 64 bits can say.
  [[nodiscard]] std::uint64_t size() const noexcept {
    if constexpr (std::is_integral_v<Index>) {
      return extent > 0 ? static_cast<std::uint64_t>(extent) : 0;
    } else {
      std::uint64_t n = 1;
      bool too_many = false;
      for (const auto x : extent) {
        if (x <= 0) return 0;
        too_many |= __builtin_mul_overflow(n, static_cast<std::uint64_t>(x), &n);
      }
      return too_many ? ~std::uint64_t{0} : n;
    }
  }
  /// The index with this number; n < size().
  [[nodiscard]] Index at(std::uint64_t n) const noexcept {
    if constexpr (std::is_integral_v<Index>) {
      return static_cast<Index>(n);
    } else {
      Index i{};
      for (std::size_t d = i.size(); d-- > 0;) {
        const auto x = static_cast<std::uint64_t>(extent[d]);
        i[d] = static_cast<typename Index::value_type>(n % x);
        n /= x;
      }
      return i;
    }
  }
  /// True if the index lies in the range.
  [[nodiscard]] bool contains(const Index& i) const noexcept {
    if constexpr (std::is_integral_v<Index>) {
      return i >= 0 && i < extent;
    } else {
      for (std::size_t d = 0; d < i.size(); ++d)
        if (i[d] < 0 || i[d] >= extent[d]) return false;
      return true;
    }
  }
  /// The number of an index that it contains.
  [[nodiscard]] std::uint64_t number_of(const Index& i) const noexcept {
    if constexpr (std::is_integral_v<Index>) {
      return static_cast<std::uint64_t>(i);
    } else {
      std::uint64_t n = 0;
      for (std::size_t d = 0; d < i.size(); ++d)
        n = n * static_cast<std::uint64_t>(extent[d]) + static_cast<std::uint64_t>(i[d]);
      return n;
    }
  }
  template <class A>
  void serialize(A& a) {
    a & extent;
  }
};

namespace detail {
__extension__ typedef unsigned __int128 wide;  // products of two 64-bit numbers
struct no_range {
  template <class A>
  void serialize(A&) {}
};
template <class Index>
inline constexpr bool has_range = std::is_integral_v<Index> || is_coordinates<Index>;
template <class Index>
struct range_of {
  using type = no_range;
};
template <class Index>
  requires has_range<Index>
struct range_of<Index> {
  using type = range<Index>;
};
}  // namespace detail

namespace detail {
/// Cuts a box into `pes` boxes: parts[d] of each dimension, so that the largest holds as little as
/// can be, and then that the cuts are as small as can be; of several ways that which cuts the last
/// dimensions. False: there are none that each hold something.
[[nodiscard]] bool cut_box(std::span<const std::int64_t> extent, std::uint32_t pes, std::span<std::uint32_t> parts);

/// A function of the user with what it knows; shared by the PEs of a node, and never changed.
template <class Index>
struct placement_function : wire::counted {
  virtual ~placement_function() = default;
  [[nodiscard]] virtual std::uint32_t operator()(const Index& i, std::uint32_t pes) const = 0;
  [[nodiscard]] virtual std::vector<std::byte> packed() const = 0;
  using reader = wire::counted_ptr<const placement_function> (*)(std::span<const std::byte>);
};
template <class Index, class F>
struct typed_placement_function final : placement_function<Index> {
  F f;
  explicit typed_placement_function(F g) : f(std::move(g)) {}
  std::uint32_t operator()(const Index& i, std::uint32_t pes) const override { return std::as_const(f)(i, pes); }
  std::vector<std::byte> packed() const override {
    std::vector<std::byte> b(orrery::wire_size(f));
    orrery::writer w{std::span<std::byte>(b)};
    orrery::write(w, f);
    return b;
  }
  static wire::counted_ptr<const placement_function<Index>> read(std::span<const std::byte> from) {
    orrery::reader r(from);
    return wire::counted_ptr<const placement_function<Index>>(new typed_placement_function(orrery::read<F>(r)));
  }
};
}  // namespace detail

namespace detail {
template <class F, class Index>
concept placement_object = serializable<F> && std::default_initializable<F> &&
                           std::is_invocable_r_v<std::uint32_t, const F&, const Index&, std::uint32_t>;
}  // namespace detail

/// Which PE an index belongs to: a pure function of the index and the number of PEs, the same
/// everywhere. It says where the *home* of an index is, which always knows where its element lives,
/// and where elements are created.
///
///     array_options<index<2>> o{.home = placement_map<index<2>>::blocks({64, 64})};
template <array_index Index>
class placement_map {
 public:
  /// A home function of the program: the number of a PE, less than `pes`.
  using function = std::uint32_t (*)(const Index& i, std::uint32_t pes);

  /// Hashed: any index, evenly and at random. The default.
  placement_map() noexcept = default;
  /// Homes by a hash of the index: the default.
  [[nodiscard]] static placement_map hashed() noexcept { return {}; }
  /// Consecutive numbers of a range on one PE; indices outside of it are hashed.
  [[nodiscard]] static placement_map blocks(const Index& extent)
    requires detail::has_range<Index>
  {
    return {kind::blocks, extent};
  }
  /// A box of a range on each of `pes` PEs: as `blocks` even, but with as few neighbours on other
  /// PEs as can be, and short rows. Where so many boxes cannot be, or in a world of another number
  /// of PEs, the same as `blocks`. Indices outside of the range are hashed. Does not park.
  [[nodiscard]] static placement_map boxes(const Index& extent, std::uint32_t pes = world_pes())
    requires detail::has_range<Index>
  {
    placement_map m(kind::blocks, extent);
    if constexpr (detail::is_coordinates<Index>) {
      std::array<std::int64_t, dimensions> wide{};
      for (std::size_t d = 0; d < dimensions; ++d) wide[d] = static_cast<std::int64_t>(extent[d]);
      if (detail::cut_box(wide, pes, m.parts_)) {
        m.what_ = kind::boxes;
        m.pes_ = pes;
      }
    }
    return m;
  }
  /// Consecutive numbers of a range on PEs in turn; indices outside of it are hashed.
  [[nodiscard]] static placement_map cyclic(const Index& extent)
    requires detail::has_range<Index>
  {
    return {kind::cyclic, extent};
  }
  /// The user's function; of what it returns the remainder by the number of PEs counts.
  placement_map(function f) : what_(kind::user) { f_.f = f; }  // NOLINT(google-explicit-constructor)
  /// A lambda without captures, say. It converts to the function above, but not on its way to
  /// options.
  template <class F>
    requires(std::convertible_to<F, function> && !std::same_as<F, function> && !std::same_as<F, placement_map>)
  placement_map(F f) : placement_map(static_cast<function>(f)) {}  // NOLINT(google-explicit-constructor)
  /// The same with state, a table say: a serializable, default-constructible class with
  /// `std::uint32_t operator()(const Index&, std::uint32_t pes) const`. It travels to each node
  /// once, and the node's PEs call it at the same time.
  template <class F>
    requires(!std::convertible_to<F, function> && !std::same_as<F, placement_map> && detail::placement_object<F, Index>)
  placement_map(F f)  // NOLINT(google-explicit-constructor)
      : what_(kind::stateful), state_(new detail::typed_placement_function<Index, F>(std::move(f))) {
    reader_.f = &detail::typed_placement_function<Index, F>::read;
  }
  /// Anything else that can be called does not compile, and says why.
  template <class F>
    requires(!std::convertible_to<F, function> && !std::same_as<F, placement_map> &&
             !detail::placement_object<F, Index> && (std::is_class_v<F> || std::is_pointer_v<F>))
  placement_map(F) {  // NOLINT(google-explicit-constructor)
    static_assert(
        std::is_invocable_r_v<std::uint32_t, const F&, const Index&, std::uint32_t>,
        "orrery: a home function is called with (const Index&, std::uint32_t pes), by a const operator() if it "
        "is an object, and returns the number of a PE");
    static_assert(!std::is_invocable_r_v<std::uint32_t, const F&, const Index&, std::uint32_t> ||
                      (serializable<F> && std::default_initializable<F>),
                  "orrery: a home function with state travels to all nodes, so its class has to be serializable and "
                  "default-constructible; a lambda with captures is neither: write a struct with the same members");
  }

  /// The PE of an index in a world of so many. Does not park.
  [[nodiscard]] std::uint32_t operator()(const Index& i, std::uint32_t pes) const {
    if constexpr (detail::has_range<Index>) {
      if (what_ == kind::blocks || what_ == kind::cyclic || what_ == kind::boxes) {
        if (range_.contains(i)) {
          if (in_boxes(pes)) return box_of(i);
          const std::uint64_t n = range_.number_of(i);
          // The inverse of first_of below.
          return static_cast<std::uint32_t>(
              what_ == kind::cyclic ? n % pes : (static_cast<detail::wide>(n) * pes + pes - 1) / range_.size());
        }
      }
    }
    if (what_ == kind::user) return (*f_.f)(i, pes) % pes;
    if (what_ == kind::stateful) return (*state_)(i, pes) % pes;
    // By the lower half of the hash: the tables of the PEs go by the highest bits, and would have
    // all their entries in a corner.
    return static_cast<std::uint32_t>(
        (std::uint64_t{static_cast<std::uint32_t>(detail::index_hash<Index>{}(i))} * pes) >> 32);
  }

  /// True if for_each_of costs nothing for the indices of others.
  [[nodiscard]] bool lists(const range<Index>& all) const noexcept
    requires detail::has_range<Index>
  {
    return (what_ == kind::blocks || what_ == kind::cyclic || what_ == kind::boxes) && range_.extent == all.extent;
  }
  /// Calls f for each index of the range that belongs to the PE.
  template <class F>
  void for_each_of(const range<Index>& all, std::uint32_t pe, std::uint32_t pes, F f) const
    requires detail::has_range<Index>
  {
    const std::uint64_t n = all.size();
    const bool same = lists(all);
    if (same && what_ == kind::cyclic) {
      for (std::uint64_t i = pe; i < n; i += pes) f(all.at(i));
      return;
    }
    if constexpr (detail::is_coordinates<Index>) {
      if (same && in_boxes(pes)) {
        for_each_in_box(pe, f);
        return;
      }
    }
    std::uint64_t first = 0;
    std::uint64_t last = n;
    if (same) {
      first = first_of(n, pe, pes);
      last = first_of(n, pe + 1, pes);
    }
    for (std::uint64_t i = first; i < last; ++i)
      if (const Index at = all.at(i); same || (*this)(at, pes) == pe) f(at);
  }

  template <class A>
  void serialize(A& a) {
    a & what_ & range_ & parts_ & pes_;
    if (what_ == kind::user) a & f_;
    if (what_ != kind::stateful) return;
    std::vector<std::byte> state;
    if constexpr (!A::is_loading::value) state = state_->packed();
    a & reader_ & state;
    if constexpr (A::is_loading::value) state_ = (*reader_.f)(state);
  }

 private:
  enum class kind : std::uint8_t { hashed, blocks, cyclic, boxes, user, stateful };
  static constexpr std::size_t dimensions = [] {
    if constexpr (detail::is_coordinates<Index>) {
      return std::tuple_size_v<Index>;
    } else {
      return std::size_t{1};
    }
  }();
  placement_map(kind k, const Index& extent) : what_(k) { range_.extent = extent; }
  [[nodiscard]] static std::uint64_t first_of(std::uint64_t n, std::uint32_t pe, std::uint32_t pes) noexcept {
    return static_cast<std::uint64_t>(static_cast<detail::wide>(n) * pe / pes);
  }

  [[nodiscard]] bool in_boxes(std::uint32_t pes) const noexcept { return what_ == kind::boxes && pes == pes_; }
  // Boxes are numbered like indices, with the last dimension fastest.
  [[nodiscard]] std::uint32_t box_of(const Index& i) const noexcept {
    std::uint64_t box = 0;
    if constexpr (detail::is_coordinates<Index>)
      for (std::size_t d = 0; d < dimensions; ++d) {
        const auto x = static_cast<std::uint64_t>(range_.extent[d]);
        box = box * parts_[d] +
              static_cast<std::uint64_t>(
                  (static_cast<detail::wide>(static_cast<std::uint64_t>(i[d])) * parts_[d] + parts_[d] - 1) / x);
      }
    return static_cast<std::uint32_t>(box);
  }
  template <class F>
  void for_each_in_box(std::uint32_t box, F f) const {
    Index first{};
    Index last{};
    for (std::size_t d = dimensions; d-- > 0;) {
      const std::uint32_t at = box % parts_[d];
      box /= parts_[d];
      const auto x = static_cast<std::uint64_t>(range_.extent[d]);
      first[d] = static_cast<typename Index::value_type>(first_of(x, at, parts_[d]));
      last[d] = static_cast<typename Index::value_type>(first_of(x, at + 1, parts_[d]));
    }
    for (Index i = first;;) {
      f(std::as_const(i));
      std::size_t d = dimensions;
      while (d-- > 0) {
        if (++i[d] < last[d]) break;
        i[d] = first[d];
        if (d == 0) return;
      }
    }
  }

  kind what_ = kind::hashed;
  typename detail::range_of<Index>::type range_;
  std::array<std::uint32_t, dimensions> parts_{};  // boxes
  std::uint32_t pes_ = 0;
  detail::callable<function> f_;
  detail::callable<typename detail::placement_function<Index>::reader> reader_;
  wire::counted_ptr<const detail::placement_function<Index>> state_;
};

}  // namespace orrery
