# SPDX-License-Identifier: Apache-2.0
# cmake -D BUILD=... -D CXX=... -P test.cmake: installs BUILD into a fresh prefix, then builds and runs the consumer
# there in both ways.
set(here ${CMAKE_CURRENT_LIST_DIR})
set(work ${BUILD}/tests/consumer_work)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

run(${CMAKE_COMMAND} -S ${here} -B ${work}/cmake -G Ninja -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work}/cmake)
run(${work}/cmake/consumer)
run(${work}/cmake/consumer_precompiled)
run(${work}/cmake/consumer_of_part --orrery-nodes=2)
if(EXISTS ${work}/cmake/consumer_hdf5)
  run(${work}/cmake/consumer_hdf5)
endif()

file(GLOB_RECURSE pc ${prefix}/*/orrery.pc)
cmake_path(GET pc PARENT_PATH pc)
set(ENV{PKG_CONFIG_PATH} ${pc})
set(warnings "-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Werror")
run(sh -c "${CXX} -std=c++23 ${warnings} ${here}/main.cpp -o ${work}/consumer $(pkg-config --cflags --libs orrery)")
run(${work}/consumer)
# What --static adds is there, too.
run(sh -c "${CXX} -std=c++23 ${here}/main.cpp -o ${work}/consumer_static $(pkg-config --static --cflags --libs orrery)")
run(${work}/consumer_static)

# Plain C links the same library; orrery-cc finds it beside itself.
run(sh -c "${CC} -std=c11 -Wall -Wextra -Wpedantic -Werror ${here}/main.c -o ${work}/consumer_c $(pkg-config --cflags --libs orrery)")
run(${work}/consumer_c)
if(EXISTS ${prefix}/bin/orrery-cc)
  run(${CMAKE_COMMAND} -E env ORRERY_CC=${CC} ${prefix}/bin/orrery-cc -Wall -Wextra -Werror ${here}/tasks.c -o ${work}/consumer_tasks)
  run(${work}/consumer_tasks)
endif()
