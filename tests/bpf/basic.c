// Programs that read, rewrite and move packets.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define DATA(context) ((void*)(long)(context)->data)
#define DATA_END(context) ((void*)(long)(context)->data_end)

SEC("xdp")
int pass(struct xdp_md* context) {
  return XDP_PASS;
}

SEC("xdp")
int udp_drop(struct xdp_md* context) {
  void* end = DATA_END(context);
  struct ethhdr* ethernet = DATA(context);
  if ((void*)(ethernet + 1) > end) return XDP_ABORTED;
  if (ethernet->h_proto != bpf_htons(ETH_P_IP)) return XDP_PASS;
  struct iphdr* ip = (void*)(ethernet + 1);
  if ((void*)(ip + 1) > end) return XDP_ABORTED;
  if (ip->protocol != IPPROTO_UDP) return XDP_PASS;
  struct udphdr* udp = (void*)ip + ip->ihl * 4;
  if ((void*)(udp + 1) > end) return XDP_ABORTED;
  return udp->dest == bpf_htons(9) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int swap(struct xdp_md* context) {
  void* end = DATA_END(context);
  struct ethhdr* ethernet = DATA(context);
  if ((void*)(ethernet + 1) > end) return XDP_ABORTED;
  for (int i = 0; i < ETH_ALEN; ++i) {
    unsigned char byte = ethernet->h_dest[i];
    ethernet->h_dest[i] = ethernet->h_source[i];
    ethernet->h_source[i] = byte;
  }
  return XDP_TX;
}

SEC("xdp")
int add_tag(struct xdp_md* context) {
  if (bpf_xdp_adjust_head(context, -4)) return XDP_ABORTED;
  void* end = DATA_END(context);
  unsigned char* bytes = DATA(context);
  if (bytes + 18 > (unsigned char*)end) return XDP_ABORTED;
  for (int i = 0; i < 12; ++i) bytes[i] = bytes[i + 4];
  bytes[12] = 0x81;
  bytes[13] = 0;
  bytes[14] = 0;
  bytes[15] = 42;
  return XDP_TX;
}

SEC("xdp")
int head_far(struct xdp_md* context) {
  if (bpf_xdp_adjust_head(context, -216)) return XDP_DROP;
  if (bpf_xdp_adjust_head(context, -4)) return XDP_PASS;
  return XDP_ABORTED;
}

SEC("xdp")
int trim(struct xdp_md* context) {
  if (bpf_xdp_adjust_tail(context, -10)) return XDP_DROP;
  if (bpf_xdp_adjust_tail(context, 20)) return XDP_ABORTED;
  return XDP_PASS;
}

SEC("xdp")
int meta(struct xdp_md* context) {
  if (bpf_xdp_adjust_meta(context, -8)) return XDP_ABORTED;
  unsigned int* note = (void*)(long)context->data_meta;
  if ((void*)(note + 2) > DATA(context)) return XDP_ABORTED;
  note[0] = 0x11223344;
  note[1] = context->rx_queue_index;
  if (!bpf_xdp_adjust_meta(context, -3)) return XDP_DROP;
  return XDP_PASS;
}

// Sums bytes in a loop whose bound the packet gives.
SEC("xdp")
int sum(struct xdp_md* context) {
  unsigned char* byte = DATA(context);
  unsigned char* end = DATA_END(context);
  unsigned int total = 0;
  for (int i = 0; i < 128; ++i) {
    if (byte + i + 1 > end) break;
    total = total * 31 + byte[i];
  }
  return total % 4;
}

SEC("xdp")
int division(struct xdp_md* context) {
  unsigned char* byte = DATA(context);
  if (byte + 14 > (unsigned char*)DATA_END(context)) return XDP_ABORTED;
  unsigned long a = byte[0] | (unsigned long)byte[1] << 40;
  unsigned int b = byte[2];
  int c = -(int)byte[3];
  unsigned long result = a / b + a % (b + 1) + (unsigned int)(a >> 3) / (b & 15) + (unsigned long)(c >> 2) * 7;
  result ^= (long)(int)a >> (b & 31);
  return result & 3;
}

static __attribute__((noinline)) int parse(void* data, void* end, struct iphdr** ip) {
  struct ethhdr* ethernet = data;
  if ((void*)(ethernet + 1) > end) return -1;
  *ip = (void*)(ethernet + 1);
  return ethernet->h_proto;
}

SEC("xdp")
int calls(struct xdp_md* context) {
  struct iphdr* ip = 0;
  int protocol = parse(DATA(context), DATA_END(context), &ip);
  if (protocol < 0) return XDP_ABORTED;
  if (!ip || (void*)(ip + 1) > DATA_END(context)) return XDP_DROP;
  ip->ttl--;
  return protocol == bpf_htons(ETH_P_IP) ? XDP_TX : XDP_PASS;
}

SEC("xdp")
int checksum(struct xdp_md* context) {
  unsigned char* byte = DATA(context);
  if (byte + 34 > (unsigned char*)DATA_END(context)) return XDP_PASS;
  long all = bpf_csum_diff(0, 0, (void*)(byte + 14), 20, 0);
  long moved = bpf_csum_diff((void*)(byte + 14), 4, (void*)(byte + 18), 8, 0x1234);
  long removed = bpf_csum_diff((void*)(byte + 14), 8, 0, 0, all);
  byte[0] = all;
  byte[1] = all >> 8;
  byte[2] = moved;
  byte[3] = moved >> 8;
  byte[4] = removed;
  byte[5] = removed >> 8;
  return XDP_TX;
}

SEC("xdp")
int bytes(struct xdp_md* context) {
  unsigned char copy[16] = {};
  long length = bpf_xdp_get_buff_len(context);
  if (bpf_xdp_load_bytes(context, 6, copy, sizeof(copy))) return XDP_DROP;
  copy[0] = length;
  if (bpf_xdp_store_bytes(context, 2, copy, 8)) return XDP_ABORTED;
  return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
