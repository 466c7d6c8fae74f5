// A map defined as libbpf took it before 1.0: refused.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct old_map {
  __u32 type, key_size, value_size, max_entries, flags;
};

struct old_map SEC("maps") counters = {BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0};

SEC("xdp") int count(struct xdp_md* ctx) {
  __u32 key = 0;
  return bpf_map_lookup_elem(&counters, &key) ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
