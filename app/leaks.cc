#include "app/leaks.h"

#include <rte_cycles.h>
#include <rte_mempool.h>

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "mempool/buffer_stamp.h"
#include "mempool/page_frag.h"

namespace halfpage {
namespace {

std::vector<void*> ObjectsOut(rte_mempool* pool) {
  std::vector<void*> out;
  const auto collect = [](void* object, void* list) { static_cast<std::vector<void*>*>(list)->push_back(object); };
  if (ReadPageFragStats(pool).has_value()) {
    if (ForEachPageFragObjectOut(pool, collect, &out) != 0) out.clear();
    return out;
  }
  std::vector<void*> free_objects;
  void* object = nullptr;
  while (rte_mempool_ops_dequeue_bulk(pool, &object, 1) == 0) free_objects.push_back(object);
  const absl::flat_hash_set<void*> free_set(free_objects.begin(), free_objects.end());
  std::vector<void*> all;
  rte_mempool_obj_iter(
      pool,
      [](rte_mempool*, void* list, void* each, unsigned) { static_cast<std::vector<void*>*>(list)->push_back(each); },
      &all);
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), [&](void* each) { return !free_set.contains(each); });
  for (void*& each : free_objects) rte_mempool_ops_enqueue_bulk(pool, &each, 1);
  return out;
}

}  // namespace

std::vector<LeakedBuffers> FindLeaks(const PktmbufPool& pool, const std::vector<std::string>& stages) {
  const uint64_t now = rte_rdtsc();
  const auto hz = static_cast<double>(rte_get_tsc_hz());
  std::map<std::string, LeakedBuffers> by_stage;
  for (void* object : ObjectsOut(pool.get())) {
    const BufferStamp* stamp = StampOf(object);
    const bool stamped = stamp->magic == kStampMagic && stamp->stage < stages.size();
    const std::string stage = stamped ? stages[stamp->stage] : "";
    const double age = stamped && now > stamp->tsc ? static_cast<double>(now - stamp->tsc) / hz : 0;
    by_stage[stage].Add(stage, age);
  }
  std::vector<LeakedBuffers> leaks;
  for (auto& [stage, leak] : by_stage) leaks.push_back(std::move(leak));
  return leaks;
}

}  // namespace halfpage
