// What README.md of xdp_emul/bpf says is not there: a program for each.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct waiting {
  struct bpf_timer timer;
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct waiting);
} timers SEC(".maps");

extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md* ctx, __u64* timestamp) __ksym;
extern int bpf_xdp_metadata_rx_hash(const struct xdp_md* ctx, __u32* hash) __ksym __weak;
extern const int bpf_prog_active __ksym;
extern const void nobody_has_this __ksym;
extern const void nobody_needs_this __ksym __weak;

static long turn(struct bpf_dynptr* record, void* context) {
  return 0;
}

SEC("xdp") int timer(struct xdp_md* ctx) {
  __u32 key = 0;
  struct waiting* value = bpf_map_lookup_elem(&timers, &key);
  return value ? bpf_timer_init(&value->timer, &timers, 1) : XDP_PASS;
}

SEC("xdp") int dynptr(struct xdp_md* ctx) {
  struct bpf_dynptr pointer;
  char bytes[16] = {};
  return bpf_dynptr_from_mem(bytes, sizeof(bytes), 0, &pointer);
}

SEC("xdp") int reserve_dynptr(struct xdp_md* ctx) {
  struct bpf_dynptr pointer;
  return bpf_ringbuf_reserve_dynptr(&timers, 16, 0, &pointer);
}

SEC("xdp") int drain(struct xdp_md* ctx) {
  return bpf_user_ringbuf_drain(&timers, turn, 0, 0);
}

SEC("xdp") int make_cookie(struct xdp_md* ctx) {
  return bpf_tcp_gen_syncookie(0, 0, 20, 0, 20);
}

SEC("xdp") int check_cookie(struct xdp_md* ctx) {
  return bpf_tcp_check_syncookie(0, 0, 20, 0, 20);
}

SEC("xdp") int udp_socket(struct xdp_md* ctx) {
  struct bpf_sock_tuple tuple = {};
  return bpf_sk_lookup_udp(ctx, &tuple, sizeof(tuple.ipv4), -1, 0) ? XDP_DROP : XDP_PASS;
}

SEC("xdp") int tcp_socket(struct xdp_md* ctx) {
  struct bpf_sock_tuple tuple = {};
  return bpf_sk_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv4), -1, 0) ? XDP_DROP : XDP_PASS;
}

SEC("xdp") int kernel_memory(struct xdp_md* ctx) {
  __u32 word = 0;
  return bpf_probe_read_kernel(&word, sizeof(word), 0);
}

SEC("xdp") int mtu(struct xdp_md* ctx) {
  __u32 length = 0;
  return bpf_check_mtu(ctx, 0, &length, 0, 0);
}

SEC("xdp") int many_values(struct xdp_md* ctx) {
  bpf_printk("%d %d %d %d", 1, 2, 3, 4);
  return XDP_PASS;
}

SEC("xdp") int kfunc(struct xdp_md* ctx) {
  __u64 timestamp = 0;
  return bpf_xdp_metadata_rx_timestamp(ctx, &timestamp);
}

SEC("xdp") int weak_kfunc(struct xdp_md* ctx) {
  __u32 hash = 0;
  return bpf_xdp_metadata_rx_hash(ctx, &hash);
}

SEC("xdp") int ksym(struct xdp_md* ctx) {
  return bpf_prog_active;
}

SEC("xdp") int untyped_ksym(struct xdp_md* ctx) {
  return *(const __u32*)&nobody_has_this;
}

// Runs: it asks before.
SEC("xdp") int asks_before(struct xdp_md* ctx) {
  __u32 hash = 0;
  if (bpf_xdp_metadata_rx_hash && bpf_xdp_metadata_rx_hash(ctx, &hash)) return XDP_DROP;
  if (&nobody_needs_this) return XDP_DROP;
  return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
