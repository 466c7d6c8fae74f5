// bpf_fib_lookup() over the routes of the surroundings.
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "xdp_emul/bpf/functions.h"
#include "xdp_emul/bpf/surroundings.h"

namespace halfpage::bpf {

uint64_t FibLookup(RunState* state, uint64_t, uint64_t parameters, uint64_t size, uint64_t flags, uint64_t) {
  if (size < sizeof(bpf_fib_lookup)) return Errno(-EINVAL);
  if ((flags & ~uint64_t{BPF_FIB_LOOKUP_DIRECT | BPF_FIB_LOOKUP_OUTPUT}) != 0) return Errno(-EINVAL);
  bpf_fib_lookup lookup;
  memcpy(&lookup, reinterpret_cast<const void*>(parameters), sizeof(lookup));
  if (lookup.family != AF_INET && lookup.family != AF_INET6) return Errno(-EAFNOSUPPORT);
  const auto* address = reinterpret_cast<const uint8_t*>(&lookup.ipv4_dst);
  const Route* route =
      state->surroundings == nullptr ? nullptr : state->surroundings->FindRoute(lookup.family, address);
  uint64_t result = BPF_FIB_LKUP_RET_SUCCESS;
  if (route == nullptr) return BPF_FIB_LKUP_RET_NOT_FWDED;
  if (lookup.tot_len > route->mtu) {
    lookup.mtu_result = route->mtu;
    result = BPF_FIB_LKUP_RET_FRAG_NEEDED;
  } else {
    lookup.mtu_result = route->mtu;
    lookup.ifindex = route->ifindex;
    if (route->has_gateway) memcpy(&lookup.ipv4_dst, route->gateway.data(), lookup.family == AF_INET ? 4 : 16);
    if (route->has_neighbour) {
      lookup.h_vlan_proto = 0;
      lookup.h_vlan_TCI = 0;
      memcpy(lookup.smac, route->source_mac.data(), 6);
      memcpy(lookup.dmac, route->destination_mac.data(), 6);
    } else {
      result = BPF_FIB_LKUP_RET_NO_NEIGH;
    }
  }
  memcpy(reinterpret_cast<void*>(parameters), &lookup, sizeof(lookup));
  return result;
}

}  // namespace halfpage::bpf
