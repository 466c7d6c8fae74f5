// Programs that keep things in maps of each type.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAP(map, kind, key_type, value_type, entries) \
  struct {                                            \
    __uint(type, kind);                               \
    __type(key, key_type);                            \
    __type(value, value_type);                        \
    __uint(max_entries, entries);                     \
  } map SEC(".maps")

struct flow {
  unsigned char address[6];
};
struct counts {
  unsigned long packets, bytes;
};

MAP(array, BPF_MAP_TYPE_ARRAY, unsigned int, struct counts, 8);
MAP(percpu, BPF_MAP_TYPE_PERCPU_ARRAY, unsigned int, struct counts, 5);
MAP(flows, BPF_MAP_TYPE_HASH, struct flow, struct counts, 16);
MAP(words, BPF_MAP_TYPE_HASH, unsigned int, unsigned int, 4);
MAP(per_flow, BPF_MAP_TYPE_PERCPU_HASH, unsigned long, unsigned long, 16);
MAP(recent, BPF_MAP_TYPE_LRU_HASH, unsigned int, unsigned int, 1024);
MAP(outs, BPF_MAP_TYPE_DEVMAP, unsigned int, unsigned int, 8);
MAP(sockets, BPF_MAP_TYPE_XSKMAP, unsigned int, unsigned int, 4);

unsigned long seen;
unsigned int limits[4] = {100, 60, 40, 20};
const volatile unsigned int chosen = 2;

SEC("xdp")
int count(struct xdp_md* context) {
  unsigned long length = context->data_end - context->data;
  unsigned int index = length & 7;
  struct counts* counts = bpf_map_lookup_elem(&array, &index);
  if (!counts) return XDP_ABORTED;
  __sync_fetch_and_add(&counts->packets, 1);
  __sync_fetch_and_add(&counts->bytes, length);
  index = 3;
  counts = bpf_map_lookup_elem(&percpu, &index);
  if (!counts) return XDP_ABORTED;
  counts->packets++;
  counts->bytes += length;
  index = 5;
  if (bpf_map_lookup_elem(&percpu, &index)) return XDP_DROP;
  return XDP_PASS;
}

SEC("xdp")
int learn(struct xdp_md* context) {
  struct ethhdr* ethernet = (void*)(long)context->data;
  if ((void*)(ethernet + 1) > (void*)(long)context->data_end) return XDP_ABORTED;
  struct flow flow;
  __builtin_memcpy(&flow, ethernet->h_source, sizeof(flow));
  struct counts* known = bpf_map_lookup_elem(&flows, &flow);
  if (known) {
    known->packets++;
    if (known->packets == 5) bpf_map_delete_elem(&flows, &flow);
    return XDP_TX;
  }
  struct counts first = {1, context->data_end - context->data};
  long error = bpf_map_update_elem(&flows, &flow, &first, BPF_NOEXIST);
  return error ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int errors(struct xdp_md* context) {
  unsigned int key = (context->data_end - context->data) % 6;
  unsigned int value = key * 3;
  long result = 0;
  result += bpf_map_update_elem(&words, &key, &value, BPF_EXIST);
  result = result * 3 + bpf_map_update_elem(&words, &key, &value, BPF_NOEXIST);
  result = result * 3 + bpf_map_update_elem(&words, &key, &value, 7);
  result = result * 3 + bpf_map_delete_elem(&array, &key);
  key = 9;
  struct counts counts = {};
  result = result * 3 + bpf_map_update_elem(&array, &key, &counts, 0);
  key = 1;
  result = result * 3 + bpf_map_update_elem(&array, &key, &counts, BPF_NOEXIST);
  seen = result;
  return XDP_PASS;
}

SEC("xdp")
int sums(struct xdp_md* context) {
  unsigned char* byte = (void*)(long)context->data;
  if (byte + 14 > (unsigned char*)(long)context->data_end) return XDP_ABORTED;
  unsigned long key = byte[5] & 15;
  unsigned long one = 1;
  unsigned long* value = bpf_map_lookup_elem(&per_flow, &key);
  if (value) {
    *value += byte[6];
  } else {
    bpf_map_update_elem(&per_flow, &key, &one, BPF_ANY);
  }
  unsigned int word = byte[7];
  bpf_map_update_elem(&recent, &word, &word, BPF_ANY);
  unsigned int* again = bpf_map_lookup_elem(&recent, &word);
  return again && *again == word ? XDP_PASS : XDP_DROP;
}

static __attribute__((noinline)) int pick(unsigned int length) {
  for (int i = 0; i < 4; ++i) {
    if (length > limits[i]) return i;
  }
  return 4;
}

SEC("xdp")
int globals(struct xdp_md* context) {
  unsigned int length = context->data_end - context->data;
  seen += length;
  limits[chosen]++;
  return pick(length) & 3;
}

SEC("xdp")
int targets(struct xdp_md* context) {
  unsigned int length = context->data_end - context->data;
  if (length & 1) return bpf_redirect_map(&outs, length & 15, XDP_DROP);
  if (length & 2) return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS);
  if (length & 4) return bpf_redirect_map(&outs, 0, BPF_F_BROADCAST);
  if (length & 8) return bpf_redirect(1, 0);
  unsigned int none = 1;
  return bpf_map_lookup_elem(&sockets, &none) ? XDP_ABORTED : bpf_redirect_map(&outs, 0, 64);
}

SEC("xdp")
int atomics(struct xdp_md* context) {
  unsigned int index = 0;
  struct counts* counts = bpf_map_lookup_elem(&array, &index);
  if (!counts) return XDP_ABORTED;
  unsigned long before = __sync_fetch_and_add(&counts->packets, 3);
  before += __sync_fetch_and_or(&counts->bytes, before);
  before += __sync_fetch_and_xor(&counts->packets, 0x55);
  before += __sync_fetch_and_and(&counts->bytes, 0xffff);
  before += __sync_lock_test_and_set(&counts->bytes, before);
  before += __sync_val_compare_and_swap(&counts->bytes, before, 77);
  return before & 3;
}

struct walk {
  unsigned int turns, total;
};
static long turn(unsigned int index, void* context) {
  struct walk* walk = context;
  walk->turns++;
  walk->total += index;
  return walk->total > 300;
}

SEC("xdp")
int loops(struct xdp_md* context) {
  struct walk walk = {};
  long turns = bpf_loop(100, turn, &walk, 0);
  seen = turns + ((unsigned long)walk.turns << 32) + walk.total;
  return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
