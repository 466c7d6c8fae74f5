// Who holds buffers of a pool while it is in use.
//
// The handler knows which objects are out of it. Those in a mempool cache are out as well; such a cache belongs to its
// lcore, which goes on changing it, so it is read as it is just then, and twice.
#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_mempool.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "app/leaks.h"
#include "mempool/buffer_stamp.h"
#include "mempool/page_frag.h"

#if defined(__SANITIZE_THREAD__)
#define HALFPAGE_READS_AS_IT_IS __attribute__((no_sanitize("thread"), noinline))
#else
#define HALFPAGE_READS_AS_IT_IS
#endif

namespace halfpage {
namespace {

constexpr useconds_t kBetweenLooks = 1000;

using Stamps = std::map<void*, BufferStamp>;

HALFPAGE_READS_AS_IT_IS void AddCached(const rte_mempool_cache& cache, absl::flat_hash_set<void*>* cached) {
  const uint32_t now = *const_cast<const volatile uint32_t*>(&cache.len);
  const uint32_t length = std::min(now, 2 * cache.size);
  for (uint32_t i = 0; i < length; ++i) cached->insert(*const_cast<void* const volatile*>(&cache.objs[i]));
}

HALFPAGE_READS_AS_IT_IS void AddStamp(void* object, void* stamps) {
  const auto* stamp = const_cast<const volatile BufferStamp*>(StampOf(object));
  (*static_cast<Stamps*>(stamps))[object] = {stamp->tsc, stamp->stage, stamp->magic};
}

// One look: stamps of what is out and in no mempool cache.
absl::StatusOr<Stamps> Look(rte_mempool* pool) {
  Stamps out;
  const int result = ForEachPageFragObjectOut(pool, AddStamp, &out);
  if (result == -ENOTSUP) {
    return absl::UnimplementedError(absl::StrFormat(
        "pool %s: while it is in use, its free buffers cannot be told from those that are out; take `ops: page_frag` "
        "without `exact`, or read the report at the end of the run",
        pool->name));
  }
  if (result != 0) {
    return absl::UnavailableError(
        absl::StrFormat("pool %s: an lcore has not left a call on its pools in time: ask again", pool->name));
  }
  absl::flat_hash_set<void*> cached;
  for (unsigned lcore = 0; lcore < RTE_MAX_LCORE; ++lcore) {
    const rte_mempool_cache* cache = rte_mempool_default_cache(pool, lcore);
    if (cache != nullptr) AddCached(*cache, &cached);
  }
  for (void* object : cached) out.erase(object);
  return out;
}

bool Same(const BufferStamp& a, const BufferStamp& b) {
  return a.tsc == b.tsc && a.stage == b.stage && a.magic == b.magic;
}

}  // namespace

absl::StatusOr<HeldBuffers> FindHeld(const PktmbufPool& pool, const std::vector<std::string>& stages, double older_than,
                                     size_t most) {
  absl::StatusOr<Stamps> first = Look(pool.get());
  if (!first.ok()) return first.status();
  usleep(kBetweenLooks);
  const absl::StatusOr<Stamps> second = Look(pool.get());
  if (!second.ok()) return second.status();
  const uint64_t now = rte_rdtsc();
  const auto hz = static_cast<double>(rte_get_tsc_hz());
  HeldBuffers held;
  held.out = second->size();
  std::map<std::string, LeakedBuffers> by_stage;
  for (const auto& [object, stamp] : *second) {
    const auto before = first->find(object);
    if (before == first->end() || !Same(before->second, stamp)) continue;
    const bool stamped = stamp.magic == kStampMagic && stamp.stage < stages.size();
    const double age = stamped && now > stamp.tsc ? static_cast<double>(now - stamp.tsc) / hz : 0;
    if (stamped && age < older_than) continue;
    held.oldest.push_back({object, stamped ? stages[stamp.stage] : "", age});
    by_stage[held.oldest.back().stage].Add(held.oldest.back().stage, age);
  }
  for (auto& [stage, leak] : by_stage) held.by_stage.push_back(std::move(leak));
  std::stable_sort(held.oldest.begin(), held.oldest.end(),
                   [](const HeldBuffer& a, const HeldBuffer& b) { return a.age > b.age; });
  if (held.oldest.size() > most) held.oldest.resize(most);
  return held;
}

std::string HeldText(const PktmbufPool& pool, const HeldBuffers& held, double older_than) {
  std::string text =
      absl::StrFormat("pool %s: %u of %u buffers are out\n", pool.config().name, held.out, pool.config().size);
  uint64_t old = 0;
  for (const LeakedBuffers& leak : held.by_stage) {
    if (leak.stage.empty()) {
      absl::StrAppendFormat(&text, "  %u without an owner's stamp (measure.track_owners: true stamps them)\n",
                            leak.count);
      continue;
    }
    old += leak.count;
    absl::StrAppendFormat(&text, "  %s: %u for %.2f s or longer, the oldest for %.2f s\n", leak.stage, leak.count,
                          leak.youngest, leak.oldest);
  }
  if (old == 0) absl::StrAppendFormat(&text, "  none has been with its owner for %.2f s\n", older_than);
  for (const HeldBuffer& each : held.oldest) {
    if (!each.stage.empty()) absl::StrAppendFormat(&text, "  %p  %9.3f s  %s\n", each.object, each.age, each.stage);
  }
  return text;
}

}  // namespace halfpage
