// Programs with tail calls, longest prefixes, queues, maps of maps and events.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define DATA(context) ((unsigned char*)(long)(context)->data)
#define DATA_END(context) ((unsigned char*)(long)(context)->data_end)

struct prefix {
  unsigned int length;
  unsigned char address[4];
};

struct {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __type(key, struct prefix);
  __type(value, unsigned int);
  __uint(max_entries, 16);
  __uint(map_flags, BPF_F_NO_PREALLOC);
} prefixes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_QUEUE);
  __type(value, unsigned int);
  __uint(max_entries, 5);
} waiting SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_STACK);
  __type(value, unsigned int);
  __uint(max_entries, 3);
} piled SEC(".maps");

struct inner {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __type(key, unsigned int);
  __type(value, unsigned long);
  __uint(max_entries, 4);
} odd SEC(".maps"), even SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __type(key, unsigned int);
  __uint(max_entries, 3);
  __array(values, struct inner);
} both SEC(".maps") = {.values = {[0] = &even, [1] = &odd}};

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __type(key, unsigned int);
  __type(value, unsigned int);
  __uint(max_entries, 4);
} events SEC(".maps");

unsigned long steps;

// 10.0.0.0/8 and what the packets teach.
SEC("xdp")
int routes(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  if (data + 34 > DATA_END(context)) return XDP_PASS;
  struct prefix key = {8 + (data[14] & 24), {data[26], data[27], data[28], data[29]}};
  unsigned int value = data[33];
  long error = bpf_map_update_elem(&prefixes, &key, &value, data[13] & 1 ? BPF_NOEXIST : BPF_ANY);
  struct prefix wanted = {32, {data[30], data[31], data[32], data[33]}};
  unsigned int* found = bpf_map_lookup_elem(&prefixes, &wanted);
  if (found) steps += *found;
  if (error && (data[15] & 3) == 0) error = bpf_map_delete_elem(&prefixes, &key);
  key.length = 40;
  steps = steps * 3 + error + bpf_map_update_elem(&prefixes, &key, &value, BPF_ANY);
  return found ? XDP_TX : XDP_DROP;
}

SEC("xdp")
int queues(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  if (data + 14 > DATA_END(context)) return XDP_ABORTED;
  unsigned int value = data[5];
  long result = bpf_map_push_elem(&waiting, &value, data[4] & 1 ? BPF_EXIST : BPF_ANY);
  result = result * 3 + bpf_map_push_elem(&piled, &value, 0);
  if (data[3] & 1) result = result * 3 + bpf_map_pop_elem(&waiting, &value);
  steps = steps * 7 + result + value;
  if (data[2] & 1) result = bpf_map_pop_elem(&piled, &value);
  if (data[2] & 2) result += bpf_map_peek_elem(&piled, &value);
  steps = steps * 7 + result + value;
  return XDP_PASS;
}

SEC("xdp")
int nested(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  if (data + 14 > DATA_END(context)) return XDP_ABORTED;
  unsigned int which = data[5] & 3;
  void* map = bpf_map_lookup_elem(&both, &which);
  if (!map) return XDP_DROP;
  unsigned int key = data[4] & 7;
  unsigned long* value = bpf_map_lookup_elem(map, &key);
  if (!value) return XDP_TX;
  *value += data[3];
  unsigned long whole = 7;
  if (key == 3) bpf_map_update_elem(map, &key, &whole, BPF_ANY);
  return XDP_PASS;
}

SEC("xdp")
int report(struct xdp_md* context) {
  unsigned long length = DATA_END(context) - DATA(context);
  struct {
    unsigned int length, mark;
  } note = {length, 0x48414c46};
  long error = bpf_perf_event_output(context, &events, BPF_F_CURRENT_CPU | (length & 0x7f) << 32, &note, sizeof(note));
  steps = steps * 3 + error + bpf_perf_event_output(context, &events, 9, &note, sizeof(note));
  steps = steps * 3 + bpf_perf_event_output(context, &events, 1ULL << 60, &note, sizeof(note));
  steps = steps * 3 + bpf_perf_event_output(context, &events, BPF_F_CURRENT_CPU | 0xffffULL << 32, &note, sizeof(note));
  return error ? XDP_PASS : XDP_TX;
}

int last(struct xdp_md* context);
int again(struct xdp_md* context);

struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __uint(key_size, sizeof(unsigned int));
  __uint(max_entries, 4);
  __array(values, int(void*));
} chain SEC(".maps") = {.values = {[0] = (void*)&last, [2] = (void*)&again}};

// Writes, moves the packet and does not come back.
SEC("xdp")
int last(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  if (data + 14 > DATA_END(context)) return XDP_ABORTED;
  data[0] = 0xaa;
  steps += 100;
  return bpf_xdp_adjust_head(context, -4) ? XDP_ABORTED : XDP_TX;
}

// Goes on with itself until the kernel's limit.
SEC("xdp")
int again(struct xdp_md* context) {
  ++steps;
  bpf_tail_call(context, &chain, 2);
  return XDP_DROP;
}

SEC("xdp")
int tail(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  if (data + 14 > DATA_END(context)) return XDP_ABORTED;
  unsigned int slot = data[5] & 7;
  bpf_tail_call(context, &chain, slot);
  data[1] = 0xbb;
  return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
