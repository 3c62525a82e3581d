// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/placement.hpp>
#include <orrery/shared/detail/shared_handle.hpp>
#include <orrery/shared/held_element.hpp>
#include <orrery/shared/shared_element.hpp>

#include <source_location>
#include <span>

namespace orrery {

/// A value that lies on one PE, its home, and is used from all: a small handle like shared_vector.
///
///     shared<int> best(0, pe(0));
///     best.set(7);
///     int x = best;
///     best += 1;
///     best.fetch_min(5);
///
/// What changes it is done where it lies, so that nobody comes in between; see shared_element.
template <class T>
class shared : public detail::scalar_changes<shared<T>, T> {
 public:
  using value_type = T;

  /// Null: using it throws usage_error.
  shared() noexcept = default;
  /// Makes a scalar. Parks and throws as the constructor of shared_vector.
  explicit shared(const T& value, placement home = here(),
                  const std::source_location& where = std::source_location::current())
      : id_(detail::make_shared_of<T>("shared scalar", 1, 1, distribution::on(home), &value, where)) {}

  /// The value as an element, for all that one can do to such.
  [[nodiscard]] shared_element<T> element(
      const std::source_location& where = std::source_location::current()) const noexcept {
    return {id_, 0, 0, where};
  }
  /// The value. May park.
  [[nodiscard]] T get(const std::source_location& where = std::source_location::current()) const {
    return element(where).get();
  }
  operator T() const { return get(); }  // NOLINT(google-explicit-constructor)
  /// Gives the scalar a value. May park.
  void set(const T& value, const std::source_location& where = std::source_location::current()) const {
    element(where) = value;
  }
  const shared& operator=(const detail::operand_here<T>& x) const {
    set(x.value, x.where);
    return *this;
  }
  /// The PE on which it lies. May park.
  [[nodiscard]] std::uint32_t home() const { return detail::owner_of_element(id_, 0, 0); }

  friend bool operator==(const shared& a, const shared& b) noexcept { return a.id_ == b.id_; }
  /// For behaviours.
  [[nodiscard]] const detail::shared_id& id() const noexcept { return id_; }

  template <class A>
  void serialize(A& a) {
    a & id_;
  }

 private:
  detail::shared_id id_;
};

/// Ends a shared scalar everywhere; see destroy of a shared vector.
template <class T>
void destroy(const shared<T>& s, const std::source_location& where = std::source_location::current()) {
  detail::destroy_shared(s.id(), where);
}

}  // namespace orrery
