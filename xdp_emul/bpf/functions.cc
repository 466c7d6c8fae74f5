#include "xdp_emul/bpf/functions.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace halfpage::bpf {
namespace {

constexpr uint64_t Bits() {
  return 0;
}
template <typename... Rest>
constexpr uint64_t Bits(bpf_map_type first, Rest... rest) {
  return uint64_t{1} << first | Bits(rest...);
}

constexpr uint64_t kData =
    Bits(BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_PERCPU_HASH,
         BPF_MAP_TYPE_LRU_HASH, BPF_MAP_TYPE_LRU_PERCPU_HASH, BPF_MAP_TYPE_LPM_TRIE);
constexpr uint64_t kOfMaps = Bits(BPF_MAP_TYPE_ARRAY_OF_MAPS, BPF_MAP_TYPE_HASH_OF_MAPS);
constexpr uint64_t kLookedUp =
    kData | kOfMaps | Bits(BPF_MAP_TYPE_DEVMAP, BPF_MAP_TYPE_DEVMAP_HASH, BPF_MAP_TYPE_XSKMAP);
constexpr uint64_t kWalked = kData & ~Bits(BPF_MAP_TYPE_LPM_TRIE);
constexpr uint64_t kQueues = Bits(BPF_MAP_TYPE_QUEUE, BPF_MAP_TYPE_STACK);
constexpr uint64_t kPushed = kQueues | Bits(BPF_MAP_TYPE_BLOOM_FILTER);
constexpr uint64_t kRing = Bits(BPF_MAP_TYPE_RINGBUF);
constexpr uint64_t kTargets =
    Bits(BPF_MAP_TYPE_DEVMAP, BPF_MAP_TYPE_DEVMAP_HASH, BPF_MAP_TYPE_XSKMAP, BPF_MAP_TYPE_CPUMAP);

using A = Argument;
using R = Result;

// By number.
constexpr Helper kHelpers[] = {
    {BPF_FUNC_map_lookup_elem, "bpf_map_lookup_elem", MapLookup, {A::kMap, A::kKey}, R::kValueOrNull, false, kLookedUp},
    {BPF_FUNC_map_update_elem,
     "bpf_map_update_elem",
     MapUpdate,
     {A::kMap, A::kKey, A::kValue, A::kNumber},
     R::kNumber,
     false,
     kData},
    {BPF_FUNC_map_delete_elem, "bpf_map_delete_elem", MapDelete, {A::kMap, A::kKey}, R::kNumber, false, kData},
    {BPF_FUNC_ktime_get_ns, "bpf_ktime_get_ns", KtimeGetNs, {}, R::kNumber, false, 0},
    {BPF_FUNC_trace_printk,
     "bpf_trace_printk",
     TracePrintk,
     {A::kMemory, A::kSize, A::kAnything, A::kAnything, A::kAnything},
     R::kNumber,
     false,
     0},
    {BPF_FUNC_get_prandom_u32, "bpf_get_prandom_u32", Random, {}, R::kNumber, false, 0},
    {BPF_FUNC_get_smp_processor_id, "bpf_get_smp_processor_id", WorkerNumber, {}, R::kNumber, false, 0},
    {BPF_FUNC_redirect, "bpf_redirect", Redirect, {A::kNumber, A::kNumber}, R::kNumber, false, 0},
    {BPF_FUNC_csum_diff,
     "bpf_csum_diff",
     CsumDiff,
     {A::kMemoryOrNull, A::kSizeOrZero, A::kMemoryOrNull, A::kSizeOrZero, A::kNumber},
     R::kNumber,
     false,
     0},
    {BPF_FUNC_tail_call,
     "bpf_tail_call",
     TailCall,
     {A::kContext, A::kMap, A::kNumber},
     R::kNumber,
     true,
     Bits(BPF_MAP_TYPE_PROG_ARRAY),
     true},
    {BPF_FUNC_perf_event_output,
     "bpf_perf_event_output",
     EventOutput,
     {A::kContext, A::kMap, A::kNumber, A::kMemory, A::kSizeOrZero},
     R::kNumber,
     false,
     Bits(BPF_MAP_TYPE_PERF_EVENT_ARRAY)},
    {BPF_FUNC_map_push_elem,
     "bpf_map_push_elem",
     MapPush,
     {A::kMap, A::kValue, A::kNumber},
     R::kNumber,
     false,
     kPushed},
    {BPF_FUNC_map_pop_elem, "bpf_map_pop_elem", MapPop, {A::kMap, A::kValueOut}, R::kNumber, false, kQueues},
    {BPF_FUNC_map_peek_elem, "bpf_map_peek_elem", MapPeek, {A::kMap, A::kValueOut}, R::kNumber, false, kPushed},
    {BPF_FUNC_get_numa_node_id, "bpf_get_numa_node_id", NodeNumber, {}, R::kNumber, false, 0},
    {BPF_FUNC_xdp_adjust_head, "bpf_xdp_adjust_head", AdjustHead, {A::kContext, A::kNumber}, R::kNumber, true, 0},
    {BPF_FUNC_redirect_map,
     "bpf_redirect_map",
     RedirectMap,
     {A::kMap, A::kNumber, A::kNumber},
     R::kNumber,
     false,
     kTargets},
    {BPF_FUNC_xdp_adjust_meta, "bpf_xdp_adjust_meta", AdjustMeta, {A::kContext, A::kNumber}, R::kNumber, true, 0},
    {BPF_FUNC_xdp_adjust_tail, "bpf_xdp_adjust_tail", AdjustTail, {A::kContext, A::kNumber}, R::kNumber, true, 0},
    {BPF_FUNC_fib_lookup,
     "bpf_fib_lookup",
     FibLookup,
     {A::kContext, A::kMemoryOut, A::kSize, A::kNumber},
     R::kNumber,
     false,
     0},
    {BPF_FUNC_ktime_get_boot_ns, "bpf_ktime_get_boot_ns", KtimeGetNs, {}, R::kNumber, false, 0},
    {BPF_FUNC_ktime_get_coarse_ns, "bpf_ktime_get_coarse_ns", KtimeGetNs, {}, R::kNumber, false, 0},
    {BPF_FUNC_loop, "bpf_loop", Loop, {A::kNumber, A::kFunction, A::kAnything, A::kNumber}, R::kNumber, false, 0, true},
    {BPF_FUNC_for_each_map_elem,
     "bpf_for_each_map_elem",
     ForEachElement,
     {A::kMap, A::kFunction, A::kAnything, A::kNumber},
     R::kNumber,
     false,
     kWalked,
     true},
    {BPF_FUNC_spin_lock, "bpf_spin_lock", TakeSpinLock, {A::kLock}, R::kNumber, false, 0, true},
    {BPF_FUNC_spin_unlock, "bpf_spin_unlock", GiveSpinLock, {A::kLock}, R::kNumber, false, 0, true},
    {BPF_FUNC_ringbuf_output,
     "bpf_ringbuf_output",
     RingOutput,
     {A::kMap, A::kMemory, A::kSizeOrZero, A::kNumber},
     R::kNumber,
     false,
     kRing},
    {BPF_FUNC_ringbuf_reserve,
     "bpf_ringbuf_reserve",
     RingReserve,
     {A::kMap, A::kNumber, A::kNumber},
     R::kRecordOrNull,
     false,
     kRing},
    {BPF_FUNC_ringbuf_submit, "bpf_ringbuf_submit", RingSubmit, {A::kRecord, A::kNumber}, R::kNumber, false, 0, true},
    {BPF_FUNC_ringbuf_discard,
     "bpf_ringbuf_discard",
     RingDiscard,
     {A::kRecord, A::kNumber},
     R::kNumber,
     false,
     0,
     true},
    {BPF_FUNC_ringbuf_query, "bpf_ringbuf_query", RingQuery, {A::kMap, A::kNumber}, R::kNumber, false, kRing},
    {BPF_FUNC_tcp_raw_gen_syncookie_ipv4,
     "bpf_tcp_raw_gen_syncookie_ipv4",
     MakeCookie4,
     {A::kHeader20, A::kMemory, A::kSize},
     R::kNumber,
     false,
     0},
    {BPF_FUNC_tcp_raw_gen_syncookie_ipv6,
     "bpf_tcp_raw_gen_syncookie_ipv6",
     MakeCookie6,
     {A::kHeader40, A::kMemory, A::kSize},
     R::kNumber,
     false,
     0},
    {BPF_FUNC_tcp_raw_check_syncookie_ipv4,
     "bpf_tcp_raw_check_syncookie_ipv4",
     CheckCookie4,
     {A::kHeader20, A::kHeader20},
     R::kNumber,
     false,
     0},
    {BPF_FUNC_tcp_raw_check_syncookie_ipv6,
     "bpf_tcp_raw_check_syncookie_ipv6",
     CheckCookie6,
     {A::kHeader40, A::kHeader20},
     R::kNumber,
     false,
     0},
    {BPF_FUNC_xdp_get_buff_len, "bpf_xdp_get_buff_len", BufferLength, {A::kContext}, R::kNumber, false, 0},
    {BPF_FUNC_xdp_load_bytes,
     "bpf_xdp_load_bytes",
     LoadBytes,
     {A::kContext, A::kNumber, A::kMemoryOut, A::kSize},
     R::kNumber,
     false,
     0},
    {BPF_FUNC_xdp_store_bytes,
     "bpf_xdp_store_bytes",
     StoreBytes,
     {A::kContext, A::kNumber, A::kMemory, A::kSize},
     R::kNumber,
     false,
     0},
};

// The kernel's numbers and names, from its interface to programs.
#define HALFPAGE_HELPER_NAME(name) "bpf_" #name
constexpr const char* kNames[] = {__BPF_FUNC_MAPPER(HALFPAGE_HELPER_NAME)};
#undef HALFPAGE_HELPER_NAME

constexpr uint32_t kNumbers = 256;

// Places in kHelpers by number, from 1; 0 for none.
struct Index {
  uint8_t place[kNumbers] = {};
  constexpr Index() {
    for (size_t i = 0; i < std::size(kHelpers); ++i) place[kHelpers[i].number] = static_cast<uint8_t>(i + 1);
  }
};
constexpr Index kIndex;

}  // namespace

const Helper* FindHelper(uint32_t number) {
  if (number >= kNumbers || kIndex.place[number] == 0) return nullptr;
  return &kHelpers[kIndex.place[number] - 1];
}

std::string HelperName(uint32_t number) {
  if (number != 0 && number < std::size(kNames)) return kNames[number];
  return absl::StrCat("helper ", number);
}

}  // namespace halfpage::bpf
