// How far two lcores are from each other, for judging what was measured between them: on a virtual machine that may
// change from one second to the next.
#pragma once

namespace halfpage {

// Nanoseconds for a cache line to go to `worker` and back, written by both: the median of ten batches. Takes about a
// millisecond; `worker` waits for work, and so it does afterwards. 0: it could not be started.
double MeasureRoundTrip(unsigned worker);

}  // namespace halfpage
