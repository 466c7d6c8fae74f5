// Contents of an XDP object's maps, from text and as text.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xdp_emul/bpf/program.h"

namespace halfpage {

// The bytes of a key or a value (`which`) of a map that `text` says, as PutIntoMap() takes them. Errors:
// InvalidArgument that begins with `where`.
absl::StatusOr<std::string> ParseMapBytes(absl::string_view where, absl::string_view which, absl::string_view text,
                                          const bpf::MapSpec& spec);

// Why nothing is put into or taken out of a map that another one stands for (EPERM), and what to do.
std::string BoundText(const bpf::MapSpec& spec);

// Puts a value under a key of a map, the same for all workers. Key and value are fields with commas in between, in the
// order of the structure: a number (little-endian, as wide as what is left where it is the last field, or with :1, :2,
// :4, :8 behind it), an IPv4 or IPv6 address, a MAC address, or hex:0a0b. Where the object names fields, NAME=FIELD
// with commas in between does, too; those that are not named are 0.
//
// Errors: InvalidArgument naming the map, what is wrong, its key and value sizes and how it is written; each begins
// with `where`.
absl::Status PutIntoMap(absl::string_view where, absl::string_view map, absl::string_view key, absl::string_view value,
                        const bpf::MapSet& maps);
// The same for "filter_ports:9=1".
absl::Status PutIntoMap(absl::string_view text, const bpf::MapSet& maps);

// Each map with its entries in hexadecimal; of arrays only those that are not all zero.
std::string DumpMaps(const bpf::MapSet& maps);

}  // namespace halfpage
