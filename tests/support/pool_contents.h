// Small pools, their contents, and a second lcore, for tests of packet memory.
#pragma once

#include <gtest/gtest.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include <functional>
#include <string>
#include <vector>

#include "mempool/pktmbuf_pool.h"
#include "tests/support/race_annotations.h"

namespace halfpage {

inline PktmbufPoolConfig Small(const std::string& ops, uint32_t size, uint32_t cache) {
  PktmbufPoolConfig config;
  config.name = "small";
  config.ops = ops;
  config.size = size;
  config.cache = cache;
  return config;
}

// Runs `there` on the one worker lcore and `here` on the calling one, and waits for both. Starting a worker and waiting
// for it is done by code that ThreadSanitizer does not see, so it is told.
inline void OnBothLcores(const std::function<void()>& here, const std::function<void()>& there) {
  const auto call = [](void* argument) {
    TellAcquire(argument);
    (*static_cast<const std::function<void()>*>(argument))();
    TellRelease(argument);
    return 0;
  };
  void* argument = const_cast<std::function<void()>*>(&there);
  const unsigned worker = rte_get_next_lcore(-1, 1, 0);
  TellRelease(argument);
  ASSERT_EQ(rte_eal_remote_launch(call, argument, worker), 0);
  here();
  rte_eal_wait_lcore(worker);
  TellAcquire(argument);
}

// Runs `work` on the one worker lcore and waits for it.
inline void OnWorker(const std::function<void()>& work) {
  OnBothLcores([] {}, work);
}

// Takes objects one by one until there is none; gives them.
inline std::vector<void*> TakeAll(rte_mempool* pool) {
  std::vector<void*> objects;
  void* object = nullptr;
  while (rte_mempool_get(pool, &object) == 0) objects.push_back(object);
  return objects;
}

inline void PutAll(rte_mempool* pool, const std::vector<void*>& objects) {
  for (void* object : objects) rte_mempool_put(pool, object);
}

}  // namespace halfpage
