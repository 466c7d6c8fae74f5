// The rows of tools/bench bpf that are programs of our own.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define DATA(context) ((void*)(long)(context)->data)
#define DATA_END(context) ((void*)(long)(context)->data_end)

struct counts {
  unsigned long packets, bytes;
};
struct flow {
  unsigned int source, destination;
  unsigned short source_port, destination_port;
  unsigned int protocol;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __type(key, unsigned int);
  __type(value, struct counts);
  __uint(max_entries, 8);
} own SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __type(key, unsigned int);
  __type(value, struct counts);
  __uint(max_entries, 8);
} all SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_DEVMAP);
  __type(key, unsigned int);
  __type(value, unsigned int);
  __uint(max_entries, 8);
} outs SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __type(key, struct flow);
  __type(value, struct counts);
  __uint(max_entries, 1024);
} flows SEC(".maps");

unsigned int slot;
unsigned long seen;

SEC("xdp")
int constant(struct xdp_md* context) {
  return XDP_DROP;
}

static __always_inline struct udphdr* udp_of(struct xdp_md* context, struct iphdr** header) {
  void* end = DATA_END(context);
  struct ethhdr* ethernet = DATA(context);
  if ((void*)(ethernet + 1) > end || ethernet->h_proto != bpf_htons(ETH_P_IP)) return 0;
  struct iphdr* ip = (void*)(ethernet + 1);
  if ((void*)(ip + 1) > end || ip->protocol != IPPROTO_UDP) return 0;
  struct udphdr* udp = (void*)ip + ip->ihl * 4;
  if ((void*)(udp + 1) > end) return 0;
  *header = ip;
  return udp;
}

SEC("xdp")
int udp_drop(struct xdp_md* context) {
  struct iphdr* ip;
  struct udphdr* udp = udp_of(context, &ip);
  if (!udp) return XDP_PASS;
  return udp->dest == bpf_htons(9) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int swap(struct xdp_md* context) {
  struct iphdr* ip;
  struct udphdr* udp = udp_of(context, &ip);
  if (!udp || udp->dest != bpf_htons(9)) return XDP_PASS;
  struct ethhdr* ethernet = DATA(context);
  for (int i = 0; i < ETH_ALEN; ++i) {
    unsigned char byte = ethernet->h_dest[i];
    ethernet->h_dest[i] = ethernet->h_source[i];
    ethernet->h_source[i] = byte;
  }
  return XDP_TX;
}

SEC("xdp")
int count(struct xdp_md* context) {
  struct iphdr* ip;
  struct udphdr* udp = udp_of(context, &ip);
  if (!udp) return XDP_PASS;
  unsigned long length = DATA_END(context) - DATA(context);
  unsigned int index = ip->ttl & 7;
  struct counts* mine = bpf_map_lookup_elem(&own, &index);
  if (!mine) return XDP_ABORTED;
  mine->packets++;
  mine->bytes += length;
  struct counts* total = bpf_map_lookup_elem(&all, &index);
  if (!total) return XDP_ABORTED;
  __sync_fetch_and_add(&total->packets, 1);
  return XDP_DROP;
}

static __attribute__((noinline)) unsigned int choose(unsigned int length) {
  seen += length;
  return length == 0 ? 1 : slot;
}

SEC("xdp")
int redirect(struct xdp_md* context) {
  unsigned int length = DATA_END(context) - DATA(context);
  return bpf_redirect_map(&outs, choose(length), XDP_PASS);
}

static __always_inline unsigned int mix(unsigned int hash, unsigned int word) {
  hash ^= word;
  hash *= 0x85ebca6b;
  return hash ^ hash >> 13;
}

// A hash over the headers, the header's checksum in a loop, and a map of flows.
SEC("xdp")
int heavy(struct xdp_md* context) {
  struct iphdr* ip;
  struct udphdr* udp = udp_of(context, &ip);
  if (!udp) return XDP_PASS;
  unsigned int sum = 0;
  unsigned short* word = (void*)ip;
  for (int i = 0; i < 10; ++i) sum += word[i];
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  unsigned int hash = 0;
  unsigned char* byte = DATA(context);
  for (int i = 0; i < 48; i += 4) {
    if ((void*)(byte + i + 4) > DATA_END(context)) break;
    hash = mix(hash, *(unsigned int*)(byte + i));
  }
  struct flow flow = {ip->saddr, ip->daddr, udp->source, udp->dest, ip->protocol};
  struct counts* counts = bpf_map_lookup_elem(&flows, &flow);
  if (counts) {
    counts->packets++;
    counts->bytes += sum ^ (hash & 1);
  } else {
    struct counts first = {1, hash};
    bpf_map_update_elem(&flows, &flow, &first, BPF_ANY);
  }
  return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
