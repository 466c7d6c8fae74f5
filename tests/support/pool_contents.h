// Taking all there is out of a pool, for tests of what it holds.
#pragma once

#include <rte_mempool.h>

#include <vector>

namespace halfpage {

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
