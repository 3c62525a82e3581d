// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/launcher.hpp>

#include <map>
#include <utility>

#include <gtest/gtest.h>

namespace orrery::transport {
namespace launcher_tests {

environment_lookup in(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto it = variables.find(std::string(name));
    return it != variables.end() ? std::optional(it->second) : std::nullopt;
  };
}
std::optional<mpi_launch> found_in(std::map<std::string, std::string> variables) {
  return find_mpi_launch(in(std::move(variables)));
}

TEST(a_launcher, of_open_mpi_says_how_many_ranks_there_are) {
  const auto l = found_in({{"OMPI_COMM_WORLD_SIZE", "8"}, {"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "x"}});
  ASSERT_TRUE(l);
  EXPECT_EQ(l->kind, mpi_kind::open_mpi);
  EXPECT_EQ(l->ranks, 8);
}
TEST(a_launcher, of_mpich_is_known_by_its_rank_and_a_way_to_it) {
  for (const char* way : {"PMI_FD", "PMI_PORT"}) {
    const auto l = found_in({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}, {way, "6"}});
    ASSERT_TRUE(l) << way;
    EXPECT_EQ(l->kind, mpi_kind::mpich);
    EXPECT_EQ(l->ranks, 4);
    EXPECT_EQ(l->pmi, -1);
  }
  EXPECT_EQ(found_in({{"PMI_RANK", "0"}, {"PMI_FD", "6"}, {"MPI_LOCALNRANKS", "2"}})->pmi, 6);
  EXPECT_FALSE(found_in({{"PMI_RANK", "0"}}));
}
TEST(a_launcher, with_pmix_may_belong_to_any_library) {
  const auto l = found_in({{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "job"}});
  ASSERT_TRUE(l);
  EXPECT_EQ(l->kind, mpi_kind::unknown);
  EXPECT_EQ(l->ranks, 0);
  EXPECT_FALSE(found_in({{"PMIX_RANK", "0"}}));
}
TEST(a_launcher, of_slurm_alone_means_nothing) {
  EXPECT_FALSE(found_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}));
  EXPECT_FALSE(found_in({}));
}
TEST(a_launcher, of_slurm_without_pmi_is_told_by_the_first_of_several_ranks) {
  const auto told = missed_launch(in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}}));
  ASSERT_TRUE(told);
  EXPECT_NE(told->find("srun has started 4 ranks without PMI"), std::string::npos) << *told;
  EXPECT_FALSE(missed_launch(in({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}})));
  EXPECT_FALSE(missed_launch(in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}})));
  // the script itself
  EXPECT_FALSE(missed_launch(in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}})));
  EXPECT_FALSE(
      missed_launch(in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"PMI_RANK", "0"}, {"PMI_FD", "6"}})));
}
TEST(a_launcher, that_says_nonsense_says_no_number) {
  EXPECT_EQ(found_in({{"OMPI_COMM_WORLD_SIZE", "many"}})->ranks, 0);
}

}  // namespace launcher_tests
}  // namespace orrery::transport
