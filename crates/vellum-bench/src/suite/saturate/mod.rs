//! Suite `saturate`: appending for longer than memory and the device can absorb.
