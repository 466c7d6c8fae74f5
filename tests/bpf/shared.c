// Programs that two workers run on the same maps.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct wide {
  unsigned long words[8];
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __type(key, unsigned int);
  __type(value, unsigned long);
  __uint(max_entries, 64);
} counts SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __type(key, unsigned int);
  __type(value, unsigned long);
  __uint(max_entries, 256);
} recent SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __type(key, unsigned int);
  __type(value, unsigned long);
  __uint(max_entries, 4);
} own SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __type(key, unsigned int);
  __type(value, struct wide);
  __uint(max_entries, 4);
} states SEC(".maps");

static __always_inline int add(void* map, unsigned int key) {
  unsigned long zero = 0;
  unsigned long* value = bpf_map_lookup_elem(map, &key);
  if (!value) {
    bpf_map_update_elem(map, &key, &zero, BPF_NOEXIST);  // the other worker may be first
    value = bpf_map_lookup_elem(map, &key);
    if (!value) return 0;
  }
  __sync_fetch_and_add(value, 1);
  return 1;
}

// Counts the packet by its first byte: in a hash, in an LRU hash, in an array of the worker's own.
SEC("xdp")
int tally(struct xdp_md* context) {
  unsigned char* data = (void*)(long)context->data;
  if (data + 14 > (unsigned char*)(long)context->data_end) return XDP_ABORTED;
  unsigned int key = data[0] & 31;
  if (!add(&counts, key) || !add(&recent, key)) return XDP_DROP;
  key = 1;
  unsigned long* mine = bpf_map_lookup_elem(&own, &key);
  if (!mine) return XDP_DROP;
  ++*mine;
  return XDP_PASS;
}

// Replaces a value whole, and finds one whole: whoever wrote it, all its words are the same.
SEC("xdp")
int replace(struct xdp_md* context) {
  unsigned char* data = (void*)(long)context->data;
  if (data + 14 > (unsigned char*)(long)context->data_end) return XDP_ABORTED;
  unsigned int key = data[0] & 3;
  struct wide wide;
  unsigned long mark = *(unsigned int*)(data + 4);
  for (int i = 0; i < 8; ++i) wide.words[i] = mark;
  if (bpf_map_update_elem(&states, &key, &wide, BPF_ANY)) return XDP_DROP;
  struct wide* found = bpf_map_lookup_elem(&states, &key);
  if (!found) return XDP_TX;
  for (int i = 1; i < 8; ++i) {
    if (found->words[i] != found->words[0]) return XDP_REDIRECT;
  }
  return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
