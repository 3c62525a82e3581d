// SPDX-License-Identifier: Apache-2.0
#include <orrery/files/hdf5/shared_hdf5.hpp>
#include <orrery/orrery.hpp>
#include <orrery/shared/shared.hpp>

#include <filesystem>

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    std::filesystem::remove("consumer.h5");
    const orrery::shared_vector<float> v(100, orrery::distribution::cyclic(), 2.5F);
    orrery::store_hdf5(v, "consumer.h5", "/v");
    const orrery::shared_vector<float> w(orrery::hdf5_sides("consumer.h5", "/v").at(0));
    orrery::load_hdf5("consumer.h5", "/v", w);
    return w[99] == 2.5F ? 0 : 1;
  });
}
