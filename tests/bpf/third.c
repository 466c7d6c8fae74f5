// Programs with walks over maps, locks, bloom filters, ring buffers, hashes of maps, SYN cookies, and types of a
// kernel.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define DATA(context) ((unsigned char*)(long)(context)->data)
#define DATA_END(context) ((unsigned char*)(long)(context)->data_end)

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __type(key, unsigned int);
  __type(value, unsigned long);
  __uint(max_entries, 64);
} seen SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __type(key, unsigned int);
  __type(value, unsigned long);
  __uint(max_entries, 6);
} own SEC(".maps");

struct guarded {
  unsigned int packets;
  struct bpf_spin_lock lock;
  unsigned long bytes;
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __type(key, unsigned int);
  __type(value, struct guarded);
  __uint(max_entries, 16);
} table SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __type(key, unsigned int);
  __type(value, struct guarded);
  __uint(max_entries, 4);
} row SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_BLOOM_FILTER);
  __type(value, unsigned int);
  __uint(max_entries, 100000);
  __uint(map_extra, 7);
} known SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
} ring SEC(".maps");

struct inner {
  __uint(type, BPF_MAP_TYPE_HASH);
  __type(key, unsigned int);
  __type(value, unsigned long);
  __uint(max_entries, 8);
} low SEC(".maps"), high SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
  __uint(max_entries, 4);
  __type(key, unsigned int);
  __array(values, struct inner);
} both SEC(".maps") = {.values = {[0] = &low, [2] = &high}};

unsigned long steps;

struct walk {
  unsigned long sum, turns, limit;
};

static long take_in(void* map, unsigned int* key, unsigned long* value, struct walk* walk) {
  walk->sum += *key * 7 + *value;
  ++*value;
  return ++walk->turns == walk->limit;
}

static long take_out(void* map, unsigned int* key, unsigned long* value, struct walk* walk) {
  if (*key & 1) bpf_map_delete_elem(&seen, key);
  ++walk->turns;
  return 0;
}

SEC("xdp")
int walk(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  if (data + 14 > DATA_END(context)) return XDP_ABORTED;
  unsigned int key = data[5] & 63;
  unsigned long value = data[4];
  bpf_map_update_elem(&seen, &key, &value, BPF_ANY);
  struct walk walk = {0, steps, steps - 1};  // the kernel would follow each turn by itself if it knew the numbers
  long visited = bpf_for_each_map_elem(&seen, take_in, &walk, 0);
  walk.limit = walk.turns + (data[3] & 7);
  visited = visited * 100 + bpf_for_each_map_elem(&own, take_in, &walk, 0);
  if (data[2] & 1) visited = visited * 100 + bpf_for_each_map_elem(&seen, take_out, &walk, 0);
  visited = visited * 3 + bpf_for_each_map_elem(&own, take_in, &walk, 1);
  steps = steps * 5 + visited + walk.sum + (walk.turns & 0xff);
  return visited & 1 ? XDP_PASS : XDP_DROP;
}

SEC("xdp")
int locked(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  unsigned long length = DATA_END(context) - data;
  if (data + 14 > DATA_END(context)) return XDP_ABORTED;
  unsigned int key = data[5] & 7;
  struct guarded whole = {.packets = data[4], .bytes = length};
  struct guarded* value = bpf_map_lookup_elem(&table, &key);
  if (!value) {
    bpf_map_update_elem(&table, &key, &whole, data[3] & 1 ? BPF_F_LOCK : BPF_NOEXIST);
    return XDP_TX;
  }
  bpf_spin_lock(&value->lock);
  ++value->packets;
  value->bytes += length;
  bpf_spin_unlock(&value->lock);
  long result = 0;
  if (data[2] & 1) result = bpf_map_update_elem(&table, &key, &whole, BPF_F_LOCK | (data[3] & 3));
  result = result * 3 + bpf_map_update_elem(&row, &key, &whole, data[1] & 1 ? BPF_F_LOCK : BPF_ANY);
  result = result * 3 + bpf_map_update_elem(&seen, &key, &length, BPF_F_LOCK);
  steps = steps * 5 + result;
  return XDP_PASS;
}

SEC("xdp")
int sieve(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  if (data + 14 > DATA_END(context)) return XDP_ABORTED;
  unsigned int value = data[5] << 8 | data[4];
  long found = bpf_map_peek_elem(&known, &value);
  long result = bpf_map_push_elem(&known, &value, data[3] & 3);
  steps = steps * 3 + found + result;
  return found ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int records(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  if (data + 14 > DATA_END(context)) return XDP_ABORTED;
  struct note {
    unsigned int length;
    unsigned char address[6];
    unsigned char tail[14];
  }* note = bpf_ringbuf_reserve(&ring, sizeof(*note), 0);
  unsigned long length = DATA_END(context) - data;
  if (note) {
    note->length = length;
    for (int i = 0; i < 6; ++i) note->address[i] = data[i];
    for (int i = 0; i < 14; ++i) note->tail[i] = i;
    if (data[5] & 1) {
      bpf_ringbuf_discard(note, 0);
    } else {
      bpf_ringbuf_submit(note, BPF_RB_NO_WAKEUP);
    }
  }
  long result = 0;
  if (data[4] & 1) result = bpf_ringbuf_output(&ring, &length, data[3] & 8, 0);
  if (data[4] & 2) result = result * 3 + bpf_ringbuf_output(&ring, &length, sizeof(length), 1UL << 40);
  for (int what = 0; what < 5; ++what) steps = steps * 3 + bpf_ringbuf_query(&ring, what);
  steps += result;
  return note ? XDP_PASS : XDP_DROP;
}

SEC("xdp")
int nested(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  if (data + 14 > DATA_END(context)) return XDP_ABORTED;
  unsigned int which = data[5] & 3;
  void* map = bpf_map_lookup_elem(&both, &which);
  if (!map) return XDP_DROP;
  unsigned int key = data[4] & 15;
  unsigned long whole = 7;
  unsigned long* value = bpf_map_lookup_elem(map, &key);
  if (!value) return bpf_map_update_elem(map, &key, &whole, BPF_ANY) ? XDP_ABORTED : XDP_TX;
  *value += data[3];
  return XDP_PASS;
}

// A cookie is made for what the packet says, and looked at as the answer to it would be. What is written into the
// packet does not depend on the secret.
static __always_inline int note(unsigned char* data, unsigned long cookie, long good, long bad) {
  data[0] = cookie >> 40;
  data[1] = cookie >> 32;
  data[2] = good;
  data[3] = bad;
  return (long)cookie < 0 ? XDP_DROP : good ? XDP_ABORTED : XDP_TX;
}

static __always_inline void answer(struct tcphdr* tcp, unsigned int cookie) {
  tcp->seq = bpf_htonl(bpf_ntohl(tcp->seq) + 1);
  tcp->ack_seq = bpf_htonl(cookie + 1);
}

SEC("xdp")
int cookie(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  struct iphdr* ip = (void*)(data + 14);
  struct tcphdr* tcp = (void*)(ip + 1);
  if ((unsigned char*)tcp + 60 > DATA_END(context)) return XDP_PASS;
  unsigned int length = tcp->doff * 4;
  if (length < 20) length = 24;
  if (length > 60) return XDP_PASS;
  unsigned int before = tcp->ack_seq;
  unsigned long made = bpf_tcp_raw_gen_syncookie_ipv4(ip, tcp, length);
  answer(tcp, made);
  long good = bpf_tcp_raw_check_syncookie_ipv4(ip, tcp);
  tcp->source ^= 1;
  long bad = bpf_tcp_raw_check_syncookie_ipv4(ip, tcp);
  tcp->source ^= 1;
  tcp->ack_seq = before;
  if ((long)made < 0) good = bad = 0;
  return note(data, made, good, bad);
}

SEC("xdp")
int cookie6(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  struct ipv6hdr* ip = (void*)(data + 14);
  struct tcphdr* tcp = (void*)(ip + 1);
  if ((unsigned char*)(tcp + 1) + 4 > DATA_END(context)) return XDP_PASS;
  unsigned int before = tcp->ack_seq;
  unsigned long made = bpf_tcp_raw_gen_syncookie_ipv6(ip, tcp, data[5] & 1 ? 24 : 20);
  answer(tcp, made);
  long good = bpf_tcp_raw_check_syncookie_ipv6(ip, tcp);
  tcp->source ^= 1;
  long bad = bpf_tcp_raw_check_syncookie_ipv6(ip, tcp);
  tcp->source ^= 1;
  tcp->ack_seq = before;
  if ((long)made < 0) good = bad = 0;
  return note(data, made, good, bad);
}

// A type that no kernel has.
struct nowhere {
  int number;
} __attribute__((preserve_access_index));
enum nothing { kNothing = 7 };

SEC("xdp")
int kernel_types(struct xdp_md* context) {
  struct nowhere* nowhere = (void*)(long)context->data;
  if ((unsigned char*)nowhere + 64 > DATA_END(context)) return XDP_ABORTED;
  int found = 0;
  if (bpf_core_type_exists(struct nowhere)) found += 1 + nowhere->number;
  if (bpf_core_field_exists(nowhere->number)) found += bpf_core_type_size(struct nowhere);
  if (bpf_core_enum_value_exists(enum nothing, kNothing)) found += bpf_core_enum_value(enum nothing, kNothing);
  return found ? XDP_DROP : XDP_PASS;
}

// What a kernel would have to say and nobody asked whether it can. The kernel refuses it as well.
SEC("xdp")
int kernel_only(struct xdp_md* context) {
  struct nowhere* nowhere = (void*)(long)context->data;
  if ((unsigned char*)nowhere + 64 > DATA_END(context)) return XDP_ABORTED;
  return nowhere->number;
}

// Behind entries of a devmap and a cpumap.
SEC("xdp/devmap")
int leaving(struct xdp_md* context) {
  return context->egress_ifindex == 7 && context->ingress_ifindex == 1 ? XDP_PASS : XDP_DROP;
}

SEC("xdp/cpumap")
int elsewhere(struct xdp_md* context) {
  return context->ingress_ifindex == 1 ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
