// Second programs: what runs behind an entry of a devmap or a cpumap, and who redirects there.
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_helpers.h>

#define DATA(context) ((unsigned char*)(long)(context)->data)
#define DATA_END(context) ((unsigned char*)(long)(context)->data_end)

struct {
  __uint(type, BPF_MAP_TYPE_DEVMAP);
  __type(key, unsigned int);
  __type(value, struct bpf_devmap_val);
  __uint(max_entries, 8);
} outs SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
  __type(key, unsigned int);
  __type(value, struct bpf_devmap_val);
  __uint(max_entries, 8);
} outs_by_key SEC(".maps");

// Its values have no place for a program.
struct {
  __uint(type, BPF_MAP_TYPE_DEVMAP);
  __type(key, unsigned int);
  __type(value, unsigned int);
  __uint(max_entries, 8);
} narrow SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_CPUMAP);
  __type(key, unsigned int);
  __type(value, struct bpf_cpumap_val);
  __uint(max_entries, 8);
} cpus SEC(".maps");

// The last byte of the sender's address chooses the slot.
#define STEER(name, section, map)                          \
  SEC(section) int name(struct xdp_md* context) {          \
    unsigned char* data = DATA(context);                   \
    if (data + 15 > DATA_END(context)) return XDP_ABORTED; \
    return bpf_redirect_map(&map, data[11], XDP_DROP);     \
  }
STEER(steer, "xdp", outs)
STEER(steer_frags, "xdp.frags", outs)
STEER(steer_by_key, "xdp", outs_by_key)
STEER(steer_narrow, "xdp", narrow)
STEER(steer_cpus, "xdp", cpus)

SEC("xdp.frags")
int everywhere(struct xdp_md* context) {
  return bpf_redirect_map(&outs, 0, BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS);
}

// Notes where the frame goes and whence it came. Byte 14 is the verdict; 9 reads where short frames have nothing.
#define LEAVE(name, section)                               \
  SEC(section) int name(struct xdp_md* context) {          \
    unsigned char* data = DATA(context);                   \
    if (data + 15 > DATA_END(context)) return XDP_ABORTED; \
    data[4] = context->ingress_ifindex;                    \
    data[5] = context->egress_ifindex;                     \
    if (data[14] == 9) return data[1400];                  \
    return data[14];                                       \
  }
LEAVE(leave, "xdp/devmap")
LEAVE(leave_frags, "xdp.frags/devmap")

// Puts a tag in front, with the number of the interface that the frame leaves by.
SEC("xdp/devmap")
int leave_tagged(struct xdp_md* context) {
  if (bpf_xdp_adjust_head(context, -4)) return XDP_DROP;
  unsigned char* data = DATA(context);
  if (data + 18 > DATA_END(context)) return XDP_ABORTED;
  for (int i = 0; i < 12; ++i) data[i] = data[i + 4];
  data[12] = 0x81;
  data[13] = 0;
  data[14] = 0;
  data[15] = context->egress_ifindex;
  return XDP_PASS;
}

// Byte 14 is the verdict; redirect goes by `outs`, slot 1.
#define ARRIVE(name, section)                                                   \
  SEC(section) int name(struct xdp_md* context) {                               \
    unsigned char* data = DATA(context);                                        \
    if (data + 15 > DATA_END(context)) return XDP_ABORTED;                      \
    data[4] = context->ingress_ifindex;                                         \
    data[5] = 0xc0 | bpf_get_smp_processor_id();                                \
    return data[14] == XDP_REDIRECT ? bpf_redirect_map(&outs, 1, 0) : data[14]; \
  }
ARRIVE(arrive, "xdp/cpumap")
ARRIVE(arrive_frags, "xdp.frags/cpumap")

char _license[] SEC("license") = "Dual BSD/GPL";
