// Programs of section xdp.frags for the kernel's test run: what they do follows from the frame's length and first
// bytes, so that frames of all lengths meet each end of each buffer.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define DATA(context) ((unsigned char*)(long)(context)->data)
#define DATA_END(context) ((unsigned char*)(long)(context)->data_end)

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __type(key, unsigned int);
  __type(value, unsigned int);
  __uint(max_entries, 2);
} events SEC(".maps");

// What helpers said, by what was asked.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __type(key, unsigned long);
  __type(value, long);
  __uint(max_entries, 4096);
} answers SEC(".maps");

static void note(struct xdp_md* context, unsigned int question, long answer) {
  unsigned long key = (unsigned long)bpf_xdp_get_buff_len(context) << 8 | question;
  bpf_map_update_elem(&answers, &key, &answer, BPF_ANY);
}

// Some number of the frame's own, 16 bits; -1 of one that is too short for any.
static int number(struct xdp_md* context, unsigned int index) {
  unsigned char* byte = DATA(context) + 2 * index;
  if (byte + 2 > DATA_END(context)) return -1;
  return byte[0] | byte[1] << 8;
}

SEC("xdp.frags")
int first(struct xdp_md* context) {
  note(context, 0, context->data_end - context->data);
  return XDP_PASS;
}

// Bytes from anywhere to anywhere, past the end among it.
SEC("xdp.frags")
int moves(struct xdp_md* context) {
  unsigned char bytes[64] = {};
  int from = number(context, 0);
  int to = number(context, 1);
  int size = number(context, 2);
  if (from < 0 || to < 0 || size < 0) return XDP_DROP;
  unsigned long length = bpf_xdp_get_buff_len(context);
  size = 1 + (size & 63);
  long read = bpf_xdp_load_bytes(context, from, bytes, size);
  note(context, 1, read);
  if (read) read = bpf_xdp_load_bytes(context, (unsigned int)from % (length + 1), bytes, size);
  for (int i = 0; i < 64; ++i) bytes[i] ^= i;
  long written = bpf_xdp_store_bytes(context, (unsigned int)to % (length + 1), bytes, size);
  note(context, 2, written);
  return read ? XDP_DROP : written ? XDP_ABORTED : XDP_TX;
}

SEC("xdp.frags")
int shrinks(struct xdp_md* context) {
  int by = number(context, 0);
  if (by < 0) return XDP_DROP;
  unsigned long length = bpf_xdp_get_buff_len(context);
  note(context, 3, bpf_xdp_adjust_tail(context, -(int)((unsigned int)by % (length + 16))));
  note(context, 4, context->data_end - context->data);
  return XDP_PASS;
}

SEC("xdp.frags")
int grows(struct xdp_md* context) {
  int by = number(context, 0);
  if (by < 0) return XDP_DROP;
  note(context, 5, bpf_xdp_adjust_tail(context, (unsigned int)by % 4400));
  note(context, 6, bpf_xdp_adjust_tail(context, (unsigned int)by % 7));
  return XDP_PASS;
}

// Cut off and grown again, in front and at the end.
SEC("xdp.frags")
int both(struct xdp_md* context) {
  unsigned char bytes[8] = "halfpage";
  int by = number(context, 0);
  int back = number(context, 1);
  int front = number(context, 2);
  if (by < 0 || back < 0 || front < 0) return XDP_DROP;
  unsigned long length = bpf_xdp_get_buff_len(context);
  note(context, 7, bpf_xdp_adjust_tail(context, -(int)((unsigned int)by % length)));
  note(context, 8, bpf_xdp_adjust_tail(context, (unsigned int)back % 1500));
  note(context, 9, bpf_xdp_adjust_head(context, (int)((unsigned int)front % 400) - 230));
  note(context, 10, bpf_xdp_adjust_meta(context, -(front & 28)));
  note(context, 11, bpf_xdp_adjust_tail(context, -(back & 31)));
  length = bpf_xdp_get_buff_len(context);
  if (length >= 8 && length < 65536) note(context, 12, bpf_xdp_store_bytes(context, length - 8, bytes, 8));
  note(context, 13, context->data_end - context->data);
  return XDP_TX;
}

// Nobody reads them here: what the kernel says of each length is what is compared.
SEC("xdp.frags")
int events_of_all_lengths(struct xdp_md* context) {
  unsigned long bytes = bpf_xdp_get_buff_len(context);
  unsigned int word = 7;
  note(context, 14, bpf_perf_event_output(context, &events, bytes << 32 | BPF_F_CURRENT_CPU, &word, sizeof(word)));
  note(context, 15,
       bpf_perf_event_output(context, &events, (bytes + 1) << 32 | BPF_F_CURRENT_CPU, &word, sizeof(word)));
  note(context, 16, bpf_perf_event_output(context, &events, (bytes + 1) << 32 | 9, &word, sizeof(word)));
  return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
