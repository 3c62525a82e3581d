// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/index_part.hpp>
#include <orrery/process/detail/finish.hpp>
#include <orrery/process/function.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// How arrays begin and end, as far as the class of their elements does not matter.
namespace orrery::detail {

/// Creates elements here, each with the arguments that all get.
template <class Index>
struct element_source {
  virtual ~element_source() = default;
  virtual void make(index_part<Index>& part, const Index& i) const = 0;
};

/// The knowledge that making an array needs of its elements: their class, and the types of the
/// arguments that all of them get. One static object for each of these. It is the handler of the
/// messages by which an array is made on other PEs, too, which index_maker sends and executes.
template <class Index>
struct element_maker : scheduler::handler {
  using new_part = wire::unique_ptr<index_part<Index>> (*)(pe&, array_core::description,
                                                           typename index_part<Index>::settings);
  using source = wire::unique_ptr<element_source<Index>>;
  using read_arguments = source (*)(const bytes& arguments);

  element_maker(std::string_view of, std::string_view key, void (*types)(wire::type_description&), new_part part,
                read_arguments with) noexcept;

  new_part part;
  read_arguments with;
};

/// Its functions are no inline ones: for the usual types of indices a program uses those of the
/// library.
template <class Index>
struct index_maker {
  using part_type = index_part<Index>;
  using settings = typename part_type::settings;
  using maker = element_maker<Index>;
  using source = element_source<Index>;

  /// An array without elements, on all PEs of this program; its number. `shares`: elements are to
  /// be made at once, and each PE waits for its share of them (array_core::begin_share). Parks.
  static std::uint32_t make_array(const maker& m, const settings& o, std::uint32_t branching, const std::string& name,
                                  bool shares);
  /// The same with an element for each index, at their homes or by `where`. A failure leaves
  /// nothing of the array.
  static std::uint32_t make_array_of(const maker& m, const settings& o, std::uint32_t branching,
                                     const std::string& name, const range<Index>& all,
                                     const std::optional<placement_map<Index>>& where, const bytes& arguments);
  /// Ends an array everywhere, from any PE of the world. Parks.
  static void destroy(std::uint32_t id);

  // --- part_making.hpp ---------------------------------------------------------------------------
  enum class step : std::uint8_t { make, fill, fill_with };
  /// The work of a maker's message.
  static void take_step(step what, const bytes& how, const bytes& arguments);
  using messages = typed_handler<function_operation<&take_step>, step, const bytes&, const bytes&>;
  static void end_shares(std::uint32_t id);
  static void know(std::uint32_t id, std::uint32_t pe, std::vector<Index> all);
  static void hear(std::uint32_t id, std::uint32_t pe, std::vector<Index> all);

  // --- part_ending.hpp ---------------------------------------------------------------------------
  /// Ends the array here and below, or what there is of it; or waits while that goes on already.
  /// Where a PE is lost, those below it are told from here. An error is thrown last: by then the
  /// array has ended wherever it could; it stays where an element could not be destroyed.
  static void unmake(std::uint32_t id);

 private:
  static void check_size(const range<Index>& all);
  // No PE makes elements for others: each one knows when its share is there.
  static bool knows_share(const range<Index>& all, const placement_map<Index>& map, std::uint32_t pes);
  static future<void> start(const maker& m, std::uint32_t pe, step what, const bytes& how, const bytes& arguments);
  static void make(const maker& m, const bytes& how);
  static void create_initial(const maker& m, const bytes& how, const bytes& arguments);
  static void create_each(const bytes& some, const source& with);
  static void tell_homes(std::uint32_t id, std::uint32_t pe, const std::vector<Index>& all,
                         std::vector<future<void>>& told);
  template <class ForEach>
  static void create(part_type& part, bool apart, std::vector<future<void>>& telling, ForEach for_each,
                     const source& with);
  // Returns when there is none here, at this moment, and no destructor of one that runs.
  static void end_elements(part_type& part);
};

}  // namespace orrery::detail
