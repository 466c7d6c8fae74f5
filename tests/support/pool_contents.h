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

namespace halfpage {

inline PktmbufPoolConfig Small(const std::string& ops, uint32_t size, uint32_t cache) {
  PktmbufPoolConfig config;
  config.name = "small";
  config.ops = ops;
  config.size = size;
  config.cache = cache;
  return config;
}

// Runs `work` on the one worker lcore and waits for it.
inline void OnWorker(const std::function<void()>& work) {
  const auto call = [](void* argument) {
    (*static_cast<const std::function<void()>*>(argument))();
    return 0;
  };
  const unsigned worker = rte_get_next_lcore(-1, 1, 0);
  ASSERT_EQ(rte_eal_remote_launch(call, const_cast<std::function<void()>*>(&work), worker), 0);
  rte_eal_wait_lcore(worker);
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
