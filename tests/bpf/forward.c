// Programs that run on devices: frames in several buffers, ways out, and mistakes that only show when they run.
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define DATA(context) ((unsigned char*)(long)(context)->data)
#define DATA_END(context) ((unsigned char*)(long)(context)->data_end)

struct {
  __uint(type, BPF_MAP_TYPE_DEVMAP);
  __type(key, unsigned int);
  __type(value, unsigned int);
  __uint(max_entries, 8);
} outs SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __type(key, unsigned int);
  __type(value, unsigned long);
  __uint(max_entries, 4);
} seen SEC(".maps");

static void note(unsigned int index, unsigned long amount) {
  unsigned long* value = bpf_map_lookup_elem(&seen, &index);
  if (value) __sync_fetch_and_add(value, amount);
}

// Writes a mark at byte 2000, wherever that is, and cuts 100 bytes off.
SEC("xdp.frags")
int mark(struct xdp_md* context) {
  unsigned char bytes[8] = "halfpage";
  unsigned char back[8] = {};
  long length = bpf_xdp_get_buff_len(context);
  if (length < 2100) return XDP_DROP;
  if (bpf_xdp_store_bytes(context, 2000, bytes, sizeof(bytes))) return XDP_ABORTED;
  if (bpf_xdp_load_bytes(context, 2000, back, sizeof(back))) return XDP_ABORTED;
  for (int i = 0; i < 8; ++i) {
    if (back[i] != bytes[i]) return XDP_ABORTED;
  }
  if (bpf_xdp_adjust_tail(context, -100)) return XDP_ABORTED;
  if (bpf_xdp_get_buff_len(context) != length - 100) return XDP_ABORTED;
  note(0, length);
  return XDP_PASS;
}

// Frames in several buffers grow and shrink in front, too.
SEC("xdp.frags")
int front(struct xdp_md* context) {
  long length = bpf_xdp_get_buff_len(context);
  if (bpf_xdp_adjust_head(context, -10)) return XDP_ABORTED;
  if (bpf_xdp_adjust_head(context, 6)) return XDP_ABORTED;
  if (bpf_xdp_get_buff_len(context) != length + 4) return XDP_ABORTED;
  unsigned char* data = DATA(context);
  if (data + 16 > DATA_END(context)) return XDP_ABORTED;
  for (int i = 0; i < 12; ++i) data[i] = data[i + 4];
  data[12] = 0x81;
  data[13] = 0;
  data[14] = 0;
  data[15] = 7;
  return XDP_PASS;
}

// The last byte of the sender's address chooses: a slot of the map, or the interface that the frame came by.
SEC("xdp")
int steer(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  if (data + sizeof(struct ethhdr) > DATA_END(context)) return XDP_ABORTED;
  unsigned int choice = data[11];
  note(1, 1);
  if (choice == 255) return bpf_redirect(context->ingress_ifindex, 0);
  if (choice == 254) return XDP_REDIRECT;
  return bpf_redirect_map(&outs, choice, XDP_DROP);
}

// Reads where many frames have nothing: the check that was left out is made for it.
SEC("xdp")
int careless(struct xdp_md* context) {
  unsigned char* data = DATA(context);
  return data[100] == 0xff ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int seven(struct xdp_md* context) {
  return 7;
}

// Metadata in front, which the next program of a chain finds.
SEC("xdp")
int put_meta(struct xdp_md* context) {
  if (bpf_xdp_adjust_meta(context, -4)) return XDP_ABORTED;
  unsigned int* meta = (void*)(long)context->data_meta;
  if ((void*)(meta + 1) > (void*)DATA(context)) return XDP_ABORTED;
  *meta = 0x12345678;
  return XDP_PASS;
}

SEC("xdp")
int get_meta(struct xdp_md* context) {
  unsigned int* meta = (void*)(long)context->data_meta;
  if ((void*)(meta + 1) > (void*)DATA(context)) return XDP_DROP;
  return *meta == 0x12345678 ? XDP_TX : XDP_ABORTED;
}

char _license[] SEC("license") = "Dual BSD/GPL";
